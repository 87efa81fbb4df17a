/** What the panel asks the application to do. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  MainAreaWidget,
  showDialog
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { NotebookActions } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { NotebookFollower } from './follower';
import { formatPath } from './model/format';
import type { SandboxModel } from './model/model';
import type { IFileEntry, ISandbox, ISandboxActions, IStep } from './tokens';
import type { PreviewWidget } from './widget/previewwidget';

/** Does it with the active notebook. */
export class SandboxActions implements ISandboxActions {
  constructor(options: SandboxActions.IOptions) {
    this._app = options.app;
    this._follower = options.follower;
    this._model = options.model;
    this._preview = options.preview;
    this._trans = options.trans;
  }

  goToCell(cellId: string): void {
    const panel = this._follower.panel;
    const notebook = panel?.content;
    const index = notebook?.widgets.findIndex(cell => cell.model.id === cellId);
    if (!panel || !notebook || index === undefined || index < 0) {
      this._model.notify(
        this._trans.__('That cell is no longer in the notebook.')
      );
      return;
    }
    this._app.shell.activateById(panel.id);
    notebook.deselectAll();
    notebook.activeCellIndex = index;
    void notebook.scrollToItem(index, 'smart');
    notebook.activate();
  }

  insertCell(source: string): void {
    const panel = this._follower.panel;
    if (panel) {
      this._app.shell.activateById(panel.id);
      NotebookActions.insertBelow(panel.content);
      panel.content.activeCell?.model.sharedModel.setSource(source);
    }
  }

  copy(text: string): void {
    Clipboard.copyToSystem(text);
  }

  openInTab(file: IFileEntry): void {
    const id = `dagger-kernel-file-${file.sandbox}-${file.stepId}-${file.path}`;
    for (const widget of this._app.shell.widgets('main')) {
      if (widget.id === id) {
        this._app.shell.activateById(id);
        return;
      }
    }
    const content = this._preview(file);
    const widget = new MainAreaWidget({ content });
    widget.id = id;
    widget.title.label = formatPath(PathExt.basename(file.path));
    widget.title.caption = formatPath(file.path);
    widget.title.icon = content.title.icon;
    this._app.shell.add(widget, 'main', { mode: 'split-right' });
    this._app.shell.activateById(id);
  }

  saveCopy(file: IFileEntry): void {
    this._saveCopy(file).catch(error =>
      this._model.notify(
        this._trans.__('The copy was not saved: %1', String(error.message))
      )
    );
  }

  private async _saveCopy(file: IFileEntry): Promise<void> {
    const panel = this._follower.panel;
    if (!panel) {
      return;
    }
    const contents = this._app.serviceManager.contents;
    const folder = PathExt.dirname(panel.context.path);
    const listing = await contents.get(folder, { content: true });
    const taken = new Set(
      (listing.content as { name: string }[]).map(item => item.name)
    );
    const name = PathExt.basename(file.path);
    const extension = PathExt.extname(name);
    const stem = name.slice(0, name.length - extension.length);
    let free = name;
    for (let count = 2; taken.has(free); count += 1) {
      free = `${stem} (${count})${extension}`;
    }
    const bytes = await this._model.bytes(file);
    const path = PathExt.join(folder, free);
    await contents.save(path, {
      type: 'file',
      format: 'base64',
      content: await base64(bytes)
    });
    await this._app.commands.execute('docmanager:open', { path });
  }

  uploadContents(paths: string[]): void {
    this._uploadContents(paths).catch(error =>
      this._model.notify(String(error.message ?? error))
    );
  }

  private async _uploadContents(paths: string[]): Promise<void> {
    const contents = this._app.serviceManager.contents;
    const files: File[] = [];
    for (const path of paths) {
      const name = PathExt.basename(path);
      const { type } = await contents.get(path, { content: false });
      if (type === 'directory') {
        this._model.notify(
          this._trans.__('%1 is a folder; drop its files.', name)
        );
        continue;
      }
      const model = await contents.get(path, {
        type: 'file',
        format: 'base64',
        content: true
      });
      const bytes = Uint8Array.from(atob(model.content), character =>
        character.charCodeAt(0)
      );
      files.push(new File([bytes], name));
    }
    await this._model.upload(files);
  }

  restartAsNew(): void {
    const trans = this._trans;
    void this._confirm(
      trans.__('Restart as new?'),
      trans.__(
        'The notebook begins with an empty sandbox. The present one stays in the log and can be reopened.'
      ),
      trans.__('Restart'),
      async () => {
        if (!(await this._restartKernel())) {
          await this._model.restart();
        }
      }
    );
  }

  reopen(sandbox: ISandbox): void {
    const trans = this._trans;
    void this._confirm(
      trans.__('Reopen this sandbox?'),
      trans.__(
        'The notebook continues where that sandbox ended, in a copy of it. A running cell is stopped; the present sandbox stays in the log.'
      ),
      trans.__('Reopen'),
      async () => {
        await this._model.reopen(sandbox.id);
        await this._restartKernel();
      }
    );
  }

  rewind(step: IStep): void {
    const trans = this._trans;
    void this._confirm(
      trans.__('Continue from step %1?', step.seq),
      trans.__(
        'The next cell starts from the state after that step. Later steps stay in the log.'
      ),
      trans.__('Continue'),
      () => this._model.rewind(step.seq)
    );
  }

  private async _confirm(
    title: string,
    body: string,
    label: string,
    action: () => Promise<void>
  ): Promise<void> {
    const answer = await showDialog({
      title,
      body,
      buttons: [
        Dialog.cancelButton({ label: this._trans.__('Cancel') }),
        Dialog.warnButton({ label })
      ]
    });
    if (!answer.button.accept) {
      return;
    }
    try {
      await action();
    } catch (error) {
      this._model.notify(
        error instanceof Error ? error.message : String(error)
      );
    }
  }

  /** Restart the notebook's kernel, which leaves its sandbox; false: none runs. */
  private async _restartKernel(): Promise<boolean> {
    const context = this._follower.panel?.sessionContext;
    if (!context?.session?.kernel) {
      return false;
    }
    await context.restartKernel();
    this._model.setLive(null);
    await this._model.show(null);
    return true;
  }

  private readonly _app: JupyterFrontEnd;
  private readonly _follower: NotebookFollower;
  private readonly _model: SandboxModel<File>;
  private readonly _preview: (file: IFileEntry) => PreviewWidget;
  private readonly _trans: TranslationBundle;
}

export namespace SandboxActions {
  export interface IOptions {
    app: JupyterFrontEnd;
    follower: NotebookFollower;
    model: SandboxModel<File>;
    /** Makes a preview for a tab. */
    preview: (file: IFileEntry) => PreviewWidget;
    trans: TranslationBundle;
  }
}

/** Return bytes as base64. */
async function base64(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}
