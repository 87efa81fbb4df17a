/** The plugins: they connect model, widgets and application, and do nothing themselves. */

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { SandboxActions } from './actions';
import { SandboxApi } from './api';
import { AttachmentWatcher } from './attachments';
import { NotebookFollower } from './follower';
import { SandboxModel } from './model/model';
import { makeRenderers } from './renderers';
import {
  DOMAIN,
  type IFileRef,
  ISandboxPanel,
  OPEN_FILE_EVENT
} from './tokens';
import type { IPanelContext } from './widget/context';
import { sandboxIcon } from './widget/icons';
import { SandboxPanelWidget, type Tab } from './widget/panel';
import { PreviewWidget } from './widget/previewwidget';
import { StatusItem } from './widget/statusitem';

/** The commands. */
export namespace CommandIDs {
  export const open = 'dagger-kernel:open-panel';
  export const refresh = 'dagger-kernel:refresh';
  export const restart = 'dagger-kernel:restart-as-new';
}

const PREFIXES = ['dagger'];

const panel: JupyterFrontEndPlugin<ISandboxPanel> = {
  id: 'dagger-kernel-lab:panel',
  description: 'The panel of files, log and status of dagger_kernel sandboxes.',
  autoStart: true,
  provides: ISandboxPanel,
  requires: [INotebookTracker, IRenderMimeRegistry],
  optional: [ILayoutRestorer, ISettingRegistry, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    rendermime: IRenderMimeRegistry,
    restorer: ILayoutRestorer | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): ISandboxPanel => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const model = new SandboxModel<File>(
      new SandboxApi(app.serviceManager.serverSettings, trans)
    );
    const follower = new NotebookFollower(tracker, model, PREFIXES);
    new AttachmentWatcher(tracker, follower, model);
    const actions = new SandboxActions({
      app,
      follower,
      model,
      trans,
      preview: file => new PreviewWidget(context, file)
    });
    const renderers = makeRenderers(rendermime);
    const context: IPanelContext = { model, actions, renderers, trans };
    const widget = new SandboxPanelWidget(context);
    const place = (side: string) =>
      app.shell.add(widget, side === 'left' ? 'left' : 'right', { rank: 600 });
    const reveal = () => app.shell.activateById(widget.id);

    place('right');
    restorer?.add(widget, widget.id);
    settings
      ?.load(panel.id)
      .then(loaded => {
        const apply = () => {
          place(String(loaded.get('side').composite));
          follower.prefixes = loaded.get('kernels').composite as string[];
        };
        apply();
        loaded.changed.connect(apply);
      })
      .catch(reason => console.error('dagger-kernel-lab: no settings', reason));

    document.addEventListener(OPEN_FILE_EVENT, event => {
      widget.open((event as CustomEvent<IFileRef>).detail);
      reveal();
    });
    addCommands(app, { actions, model, reveal, trans, widget });
    for (const command of Object.values(CommandIDs)) {
      palette?.addItem({ command, category: trans.__('Sandbox') });
    }
    return {
      model,
      open: file => {
        widget.open(file);
        reveal();
      }
    };
  }
};

function addCommands(
  app: JupyterFrontEnd,
  parts: Pick<IPanelContext, 'actions' | 'trans'> & {
    model: SandboxModel<File>;
    reveal: () => void;
    widget: SandboxPanelWidget;
  }
): void {
  const { actions, model, reveal, trans, widget } = parts;
  const none = { type: 'object', properties: {} } as const;
  app.commands.addCommand(CommandIDs.open, {
    label: trans.__('Show Sandbox Panel'),
    icon: sandboxIcon,
    describedBy: {
      args: {
        type: 'object',
        properties: { tab: { enum: ['files', 'log', 'status'] } }
      }
    },
    execute: args => {
      if (typeof args.tab === 'string') {
        widget.select(args.tab as Tab);
      }
      reveal();
    }
  });
  app.commands.addCommand(CommandIDs.refresh, {
    label: trans.__('Refresh Sandbox Panel'),
    describedBy: { args: none },
    isEnabled: () => model.state.notebook !== null,
    execute: () => model.refresh()
  });
  app.commands.addCommand(CommandIDs.restart, {
    label: trans.__('Restart Sandbox as New…'),
    describedBy: { args: none },
    isEnabled: () => model.state.sandbox !== null,
    execute: () => actions.restartAsNew()
  });
  model.changed.connect(() => app.commands.notifyCommandChanged());
}

const statusItem: JupyterFrontEndPlugin<void> = {
  id: 'dagger-kernel-lab:status-item',
  description: 'Shows in the status bar how far the sandbox is.',
  autoStart: true,
  requires: [ISandboxPanel],
  optional: [IStatusBar, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    { model }: ISandboxPanel,
    statusBar: IStatusBar | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const item = new StatusItem(
      model,
      trans,
      () => void app.commands.execute(CommandIDs.open, { tab: 'status' })
    );
    statusBar?.registerStatusItem(statusItem.id, {
      item,
      align: 'left',
      rank: 20
    });
  }
};

export default [panel, statusItem];
