/** The side panel: three tabs over one model. */

import { closeIcon, ReactWidget, refreshIcon } from '@jupyterlab/ui-components';
import type { Drag } from '@lumino/dragdrop';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import { CONTENTS_MIME, type IPanelState } from '../tokens';
import { type IPanelContext, PanelContext, usePanel } from './context';
import { fileKey, FilesView } from './filesview';
import { sandboxIcon } from './icons';
import { LogView } from './logview';
import { Boundary, IconButton, Notice, Placeholder, TextButton } from './parts';
import { StatusView } from './statusview';

export type Tab = 'files' | 'log' | 'status';

const DRAG_EVENTS = ['lm-dragenter', 'lm-dragover', 'lm-dragleave', 'lm-drop'];

const TABS: Tab[] = ['files', 'log', 'status'];

/** The widget. */
export class SandboxPanelWidget extends ReactWidget {
  constructor(context: IPanelContext) {
    super();
    this._context = context;
    this.id = 'dagger-kernel-panel';
    this.addClass('dk-Panel');
    this.title.icon = sandboxIcon;
    this.title.caption = context.trans.__('Sandbox');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', context.trans.__('Sandbox'));
    context.model.changed.connect(() => this.update(), this);
  }

  /** Show a tab. */
  select(tab: Tab): void {
    this._tab = tab;
    this.update();
  }

  /** Show a file's preview. */
  open(file: { sandbox: string; path: string }): void {
    this._tab = 'files';
    this._file = fileKey(file);
    this.update();
  }

  handleEvent(event: Event): void {
    const drag = event as Drag.Event;
    const ours =
      drag.mimeData.hasData(CONTENTS_MIME) &&
      this._context.model.state.notebook !== null;
    if (!ours) {
      return;
    }
    switch (event.type) {
      case 'lm-dragenter':
      case 'lm-dragover':
        drag.preventDefault();
        drag.stopPropagation();
        drag.dropAction = drag.proposedAction;
        this.addClass('dk-mod-contents');
        break;
      case 'lm-dragleave':
        this.removeClass('dk-mod-contents');
        break;
      case 'lm-drop':
        drag.preventDefault();
        drag.stopPropagation();
        drag.dropAction = drag.proposedAction;
        this.removeClass('dk-mod-contents');
        this.select('files');
        this._context.actions.uploadContents(
          drag.mimeData.getData(CONTENTS_MIME) as string[]
        );
        break;
    }
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    DRAG_EVENTS.forEach(type => this.node.addEventListener(type, this));
  }

  protected onBeforeDetach(message: Message): void {
    DRAG_EVENTS.forEach(type => this.node.removeEventListener(type, this));
    super.onBeforeDetach(message);
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this._context.model.refresh();
  }

  protected render(): JSX.Element {
    return (
      <PanelContext.Provider value={this._context}>
        <PanelBody
          state={this._context.model.state}
          tab={this._tab}
          file={this._file}
          step={this._step}
          onTab={tab => this.select(tab)}
          onFile={file => {
            this._file = file;
            this.update();
          }}
          onStep={step => {
            this._step = step;
            this.update();
          }}
        />
      </PanelContext.Provider>
    );
  }

  private readonly _context: IPanelContext;
  private _tab: Tab = 'files';
  private _file: string | null = null;
  private _step: string | null = null;
}

interface IBodyProps {
  state: IPanelState;
  tab: Tab;
  file: string | null;
  step: string | null;
  onTab: (tab: Tab) => void;
  onFile: (file: string | null) => void;
  onStep: (step: string | null) => void;
}

export function PanelBody(props: IBodyProps): JSX.Element {
  const { state, tab } = props;
  const { model, trans } = usePanel();
  const refresh = () => void model.refresh();
  if (state.phase === 'none') {
    return (
      <Placeholder title={trans.__('No sandbox')}>
        <p>
          {trans.__(
            'Open a notebook whose kernel is "Python (sandbox)" to see its files, its log and its status.'
          )}
        </p>
      </Placeholder>
    );
  }
  return (
    <>
      <header className="dk-Header">
        <h2 className="dk-Header-title" title={state.notebook ?? ''}>
          {state.notebook?.split('/').pop()}
        </h2>
        <KernelState state={state} />
        <IconButton
          icon={refreshIcon}
          label={trans.__('Refresh')}
          onClick={refresh}
        />
      </header>
      {(state.offline || (state.error && state.phase !== 'error')) && (
        <Notice
          kind="warning"
          action={
            <TextButton onClick={refresh}>{trans.__('Retry')}</TextButton>
          }
        >
          {state.offline
            ? trans.__('The server does not answer; what is shown is older.')
            : state.error}
        </Notice>
      )}
      {state.pinned && (
        <Notice
          kind="info"
          action={
            <TextButton onClick={() => void model.show(null)}>
              {trans.__('Back')}
            </TextButton>
          }
        >
          {trans.__('You look at an older sandbox of this notebook.')}
        </Notice>
      )}
      {state.notices.map(notice => (
        <Notice
          key={notice}
          kind="warning"
          action={
            <IconButton
              icon={closeIcon}
              label={trans.__('Dismiss')}
              onClick={() => model.dismiss(notice)}
            />
          }
        >
          {notice}
        </Notice>
      ))}
      <Tabs {...props} />
      <div
        id={`dk-view-${tab}`}
        className="dk-View"
        role="tabpanel"
        aria-labelledby={`dk-tab-${tab}`}
      >
        <Boundary
          boundaryKey={`${tab}/${props.file}/${props.step}/${state.notebook}`}
          title={trans.__('This cannot be drawn')}
        >
          <View {...props} />
        </Boundary>
      </div>
    </>
  );
}

function KernelState(props: { state: IPanelState }): JSX.Element {
  const { state } = props;
  const { trans } = usePanel();
  const text =
    state.kernel === null
      ? trans.__('no kernel')
      : state.kernel === 'busy'
        ? state.progress || trans.__('running')
        : state.kernel;
  return (
    <span className="dk-Kernel" role="status">
      {state.kernel === 'busy' && (
        <span className="dk-Spinner" aria-hidden="true" />
      )}
      <span className="dk-Kernel-text" title={text}>
        {text}
      </span>
    </span>
  );
}

function Tabs(props: IBodyProps): JSX.Element {
  const { state, tab, onTab } = props;
  const { trans } = usePanel();
  const labels: Record<Tab, string> = {
    files: trans.__('Files'),
    log: trans.__('Log'),
    status: trans.__('Status')
  };
  const counts: Record<Tab, number> = {
    files: state.results.length + state.attachments.length,
    log: state.steps.length,
    status: state.lost.length
  };
  const move = (event: React.KeyboardEvent) => {
    const at = TABS.indexOf(tab);
    const target = {
      ArrowRight: TABS[(at + 1) % TABS.length],
      ArrowLeft: TABS[(at + TABS.length - 1) % TABS.length],
      Home: TABS[0],
      End: TABS[TABS.length - 1]
    }[event.key];
    if (target) {
      event.preventDefault();
      onTab(target);
      document.getElementById(`dk-tab-${target}`)?.focus();
    }
  };
  return (
    <div
      className="dk-Tabs"
      role="tablist"
      aria-label={trans.__('Sandbox')}
      onKeyDown={move}
    >
      {TABS.map(one => (
        <button
          key={one}
          id={`dk-tab-${one}`}
          type="button"
          role="tab"
          className="dk-Tab"
          aria-selected={one === tab}
          aria-controls={one === tab ? `dk-view-${one}` : undefined}
          tabIndex={one === tab ? 0 : -1}
          onClick={() => onTab(one)}
        >
          {labels[one]}
          {counts[one] > 0 && (
            <span
              className={
                'dk-Count' + (one === 'status' ? ' dk-mod-warning' : '')
              }
            >
              {counts[one]}
            </span>
          )}
        </button>
      ))}
    </div>
  );
}

function View(props: IBodyProps): JSX.Element {
  const { state, tab } = props;
  const { model, trans } = usePanel();
  if (tab === 'status') {
    return <StatusView state={state} />;
  }
  if (state.phase === 'loading') {
    return <Placeholder busy title={trans.__('Loading the log')} />;
  }
  if (state.phase === 'error') {
    return (
      <Placeholder title={trans.__('The sandbox cannot be shown')}>
        <p role="alert">{state.error}</p>
        <TextButton onClick={() => void model.refresh()}>
          {trans.__('Retry')}
        </TextButton>
      </Placeholder>
    );
  }
  return tab === 'files' ? (
    <FilesView state={state} open={props.file} onOpen={props.onFile} />
  ) : (
    <LogView state={state} open={props.step} onOpen={props.onStep} />
  );
}
