/** Puts what is attached to a cell into the sandbox at once: the kernel finds it only when the notebook is saved. */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { NotebookFollower } from './follower';
import { attachmentsOf, type IAttachment } from './model/attachments';
import type { SandboxModel } from './model/model';

const SETTLE_MS = 200;

/** Watches the notebooks whose kernel runs in a sandbox. */
export class AttachmentWatcher {
  constructor(
    tracker: INotebookTracker,
    private readonly _follower: NotebookFollower,
    private readonly _model: SandboxModel<File>
  ) {
    tracker.forEach(panel => this._watch(panel));
    tracker.widgetAdded.connect((_, panel) => this._watch(panel));
  }

  private _watch(panel: NotebookPanel): void {
    let known: Set<string> | undefined;
    let timer = 0;
    const look = () => {
      if (panel.isDisposed || panel !== this._follower.panel) {
        return;
      }
      const found = attached(panel);
      const fresh = found.filter(file => !known?.has(file.key));
      known = new Set(found.map(file => file.key));
      if (fresh.length > 0 && panel.sessionContext.session?.kernel) {
        void this._model.upload(fresh.map(fileOf));
      }
    };
    void panel.context.ready.then(() => {
      // What is in the file, the kernel puts in.
      known = new Set(attached(panel).map(file => file.key));
      panel.context.model.contentChanged.connect(() => {
        window.clearTimeout(timer);
        timer = window.setTimeout(look, SETTLE_MS);
      });
    });
    panel.disposed.connect(() => window.clearTimeout(timer));
  }
}

function attached(panel: NotebookPanel): IAttachment[] {
  const cells = panel.context.model.sharedModel.cells;
  return attachmentsOf(
    cells
      .filter(cell => cell.cell_type !== 'code')
      .map(cell => ({
        id: cell.id,
        attachments: 'getAttachments' in cell ? cell.getAttachments() : null
      }))
  );
}

function fileOf(attachment: IAttachment): File {
  return new File([attachment.bytes], attachment.name, {
    type: attachment.mime
  });
}
