/** Tells the model what happens in JupyterLab: which notebook is active, what its kernel does. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage, Session } from '@jupyterlab/services';

import type { SandboxModel } from './model/model';
import { FILES_MIME } from './tokens';

/** Follows the active notebook. */
export class NotebookFollower {
  /**
   * @param tracker The notebooks.
   * @param model What is told.
   * @param prefixes Names of kernels that run in a sandbox begin with one of these.
   */
  constructor(
    tracker: INotebookTracker,
    model: SandboxModel<File>,
    prefixes: string[]
  ) {
    this._tracker = tracker;
    this._model = model;
    this._prefixes = prefixes;
    tracker.currentChanged.connect(this._onCurrent, this);
    this._onCurrent();
  }

  /** The active notebook, if its kernel runs in a sandbox. */
  get panel(): NotebookPanel | null {
    return this._panel !== null && this._isOurs(this._panel.sessionContext)
      ? this._panel
      : null;
  }

  set prefixes(prefixes: string[]) {
    this._prefixes = prefixes;
    this._update();
  }

  private _isOurs(context: ISessionContext): boolean {
    const name =
      context.session?.kernel?.name ?? context.kernelPreference.name ?? '';
    return this._prefixes.some(prefix => name.startsWith(prefix));
  }

  private _onCurrent(): void {
    const panel = this._tracker.currentWidget;
    if (panel === this._panel) {
      return;
    }
    const before = this._panel?.sessionContext;
    before?.kernelChanged.disconnect(this._onKernel, this);
    before?.sessionChanged.disconnect(this._onSession, this);
    before?.statusChanged.disconnect(this._onStatus, this);
    this._panel?.context.pathChanged.disconnect(this._update, this);
    this._panel = panel;
    const context = panel?.sessionContext;
    context?.kernelChanged.connect(this._onKernel, this);
    context?.sessionChanged.connect(this._onSession, this);
    context?.statusChanged.connect(this._onStatus, this);
    panel?.context.pathChanged.connect(this._update, this);
    panel?.disposed.connect(() => {
      if (this._panel === panel) {
        this._panel = null;
        this._onSession();
      }
    });
    this._onSession();
  }

  private _onSession(): void {
    this._listen(this._panel?.sessionContext.session ?? null);
    this._update();
  }

  private _listen(session: Session.ISessionConnection | null): void {
    if (session === this._session) {
      return;
    }
    this._session?.anyMessage.disconnect(this._onMessage, this);
    this._session = session;
    session?.anyMessage.connect(this._onMessage, this);
  }

  private _onKernel(): void {
    // A new kernel may use a new sandbox.
    this._model.setLive(null);
    this._onSession();
    void this._model.refresh();
  }

  private _onStatus(): void {
    const kernel = this._panel?.sessionContext.session?.kernel;
    this._model.setKernel(kernel ? statusText(kernel.status) : null);
    if (
      kernel?.status === 'restarting' ||
      kernel?.status === 'autorestarting'
    ) {
      this._model.setLive(null);
    }
  }

  private _update(): void {
    void this._model.setNotebook(this.panel?.context.localPath ?? null);
    this._onStatus();
  }

  private _onMessage(
    _sender: unknown,
    { msg, direction }: Kernel.IAnyMessageArgs
  ): void {
    if (direction !== 'recv' || this.panel === null) {
      return;
    }
    switch (msg.header.msg_type) {
      case 'execute_reply': {
        const told = record(record(msg.metadata)?.dagger_kernel);
        if (typeof told?.sandbox === 'string') {
          this._model.setLive(told.sandbox);
        }
        void this._model.refresh();
        if (Array.isArray(told?.drift)) {
          told.drift.forEach(line => this._model.notify(String(line)));
        }
        break;
      }
      case 'display_data':
      case 'update_display_data': {
        const content = (msg as KernelMessage.IDisplayDataMsg).content;
        const mark = record(record(content.metadata)?.dagger_kernel);
        const bundle = record(content.data[FILES_MIME]);
        if (mark?.progress === true) {
          const text = String(content.data['text/plain'] ?? '');
          this._model.setProgress(text.replace(/^\[sandbox\] /, ''));
        } else if (typeof bundle?.sandbox === 'string') {
          this._model.setLive(bundle.sandbox);
        }
        break;
      }
      case 'clear_output':
      case 'stream':
        if (this._model.state.progress) {
          this._model.setProgress('');
        }
        break;
    }
  }

  private readonly _tracker: INotebookTracker;
  private readonly _model: SandboxModel<File>;
  private _prefixes: string[];
  private _panel: NotebookPanel | null = null;
  private _session: Session.ISessionConnection | null = null;
}

function statusText(status: Kernel.Status): string | null {
  return status === 'dead' || status === 'terminating' ? null : status;
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)
    : undefined;
}
