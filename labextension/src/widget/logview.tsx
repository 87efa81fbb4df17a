/** Log: the steps, in order, and what each of them said and did. */

import { addIcon, copyIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { durationOf, lostNames } from '../model/files';
import {
  formatDuration,
  formatPath,
  formatSize,
  formatTime
} from '../model/format';
import { currentIds, statusOf } from '../model/model';
import type { IPanelState, IStep } from '../tokens';
import { usePanel } from './context';
import { FromState } from './fromstate';
import {
  Host,
  IconButton,
  Notice,
  Placeholder,
  TextButton,
  useLoaded
} from './parts';

const ROWS = 300;

export function LogView(props: {
  state: IPanelState;
  open: string | null;
  onOpen: (id: string | null) => void;
}): JSX.Element {
  const { state } = props;
  const { model, trans } = usePanel();
  const [shown, setShown] = React.useState(ROWS);
  const last = state.steps[state.steps.length - 1];
  React.useEffect(
    () => void model.refreshCached(),
    [last?.id, last?.status, state.sandbox?.id]
  );
  const current = React.useMemo(() => currentIds(state.steps), [state.steps]);
  if (state.steps.length === 0) {
    return (
      <Placeholder title={trans.__('No steps yet')}>
        <p>{trans.__('Every cell you run is logged here.')}</p>
      </Placeholder>
    );
  }
  const replay = /(\d+)\/(\d+)/.exec(state.progress);
  const hidden = Math.max(0, state.steps.length - shown);
  return (
    <div className="dk-Log">
      {state.progress && (
        <Notice kind="info">
          {state.progress}
          {replay && (
            <progress
              className="dk-Replay"
              aria-label={state.progress}
              value={Number(replay[1])}
              max={Number(replay[2])}
            />
          )}
        </Notice>
      )}
      {hidden > 0 && (
        <TextButton onClick={() => setShown(shown + 10 * ROWS)}>
          {trans.__('Show %1 earlier steps', hidden)}
        </TextButton>
      )}
      <ol className="dk-List" aria-label={trans.__('Steps')}>
        {state.steps.slice(hidden).map(step => (
          <StepRow
            key={step.id}
            step={step}
            state={state}
            current={current.has(step.id)}
            open={props.open === step.id}
            onToggle={() =>
              props.onOpen(props.open === step.id ? null : step.id)
            }
          />
        ))}
      </ol>
    </div>
  );
}

function StepRow(props: {
  step: IStep;
  state: IPanelState;
  current: boolean;
  open: boolean;
  onToggle: () => void;
}): JSX.Element {
  const { step, state } = props;
  const { trans } = usePanel();
  const status = statusOf(step, state);
  const duration = durationOf(step);
  const id = React.useId();
  const lost = lostNames(step).filter(item => item.isNew).length;
  const own = step.sandbox === state.sandbox?.id;
  return (
    <li
      className={`dk-Step dk-mod-${status}${props.current ? '' : ' dk-mod-left'}`}
    >
      <button
        type="button"
        className="dk-Step-head"
        aria-expanded={props.open}
        aria-controls={id}
        onClick={props.onToggle}
      >
        <span className="dk-Step-seq">{step.seq}</span>
        <span className="dk-Step-main">
          <span className="dk-Step-title">{titleOf(step, state, trans)}</span>
          <span className="dk-Meta">
            <span className={`dk-Status dk-mod-${status}`}>
              {statusText(status, step, trans)}
            </span>
            {kindText(step, trans)}
            {duration !== undefined && <span>{formatDuration(duration)}</span>}
            {state.cached?.has(step.id) && (
              <span
                title={trans.__(
                  'The engine holds the state after this step; it need not be replayed.'
                )}
              >
                {trans.__('cached')}
              </span>
            )}
            {step.files.length > 0 && (
              <span>{trans._n('%1 file', '%1 files', step.files.length)}</span>
            )}
            {lost > 0 && (
              <span className="dk-mod-warning">
                {trans._n('%1 variable lost', '%1 variables lost', lost)}
              </span>
            )}
            {step.truncated && <span>{trans.__('output cut')}</span>}
            {!props.current && <span>{trans.__('left behind')}</span>}
            {!own && <span>{trans.__('from an older sandbox')}</span>}
          </span>
        </span>
      </button>
      <div id={id} hidden={!props.open} className="dk-Step-body">
        {props.open && <StepDetail step={step} own={own} />}
      </div>
    </li>
  );
}

type Trans = ReturnType<typeof usePanel>['trans'];

function titleOf(step: IStep, state: IPanelState, trans: Trans): string {
  if (step.kind === 'rewind') {
    const target = state.steps.find(one => one.id === step.to);
    return target
      ? trans.__('Back to step %1: %2', target.seq, target.title)
      : trans.__('Back to the beginning');
  }
  if (step.kind === 'upload') {
    return step.files
      .map(file => formatPath(file.path.replace(/^attachments\//, '')))
      .join(', ');
  }
  return step.title || trans.__('(empty)');
}

function statusText(
  status: ReturnType<typeof statusOf>,
  step: IStep,
  trans: Trans
): string {
  switch (status) {
    case 'ok':
      return trans.__('ok');
    case 'error':
      return trans.__('error');
    case 'interrupted':
      return trans.__('interrupted');
    case 'limit':
      return step.reason
        ? trans.__('limit: %1', step.reason)
        : trans.__('limit');
    case 'lost':
      return trans.__('lost by the engine');
    case 'running':
      return trans.__('running');
    case 'unfinished':
      return trans.__('did not finish');
  }
}

function kindText(step: IStep, trans: Trans): JSX.Element | null {
  switch (step.kind) {
    case 'cell':
      return step.execution_count === null ? null : (
        <span>[{step.execution_count}]</span>
      );
    case 'upload':
      return <span>{trans.__('upload')}</span>;
    case 'mount':
      return <span>{trans.__('skill')}</span>;
    case 'rewind':
      return <span>{trans.__('rewind')}</span>;
  }
}

function StepDetail(props: { step: IStep; own: boolean }): JSX.Element {
  const { step } = props;
  const { actions, model, renderers, trans } = usePanel();
  const key = `${step.id}/${step.status}`;
  const loaded = useLoaded(key, () => model.detail(step));
  if (loaded.error) {
    return <Notice kind="error">{loaded.error}</Notice>;
  }
  if (!loaded.value) {
    return <Placeholder busy title={trans.__('Loading')} />;
  }
  const detail = loaded.value;
  const cellId = step.cell_id;
  return (
    <>
      <div
        className="dk-Toolbar"
        role="toolbar"
        aria-label={trans.__('Step %1', step.seq)}
      >
        {cellId !== null && (
          <TextButton onClick={() => actions.goToCell(cellId)}>
            {trans.__('Go to cell')}
          </TextButton>
        )}
        {props.own && step.status !== 'pending' && step.kind !== 'rewind' && (
          <TextButton
            title={trans.__(
              'The next cell starts from the state after this step'
            )}
            onClick={() => actions.rewind(step)}
          >
            {trans.__('Continue from here')}
          </TextButton>
        )}
        <span className="dk-Spring" />
        {detail.source !== '' && (
          <span className="dk-Group">
            <IconButton
              icon={copyIcon}
              label={trans.__('Copy the source')}
              onClick={() => actions.copy(detail.source)}
            />
            <IconButton
              icon={addIcon}
              label={trans.__('Insert as a cell')}
              onClick={() => actions.insertCell(detail.source)}
            />
          </span>
        )}
      </div>
      {detail.source !== '' && (
        <pre
          className="dk-Step-source"
          tabIndex={0}
          aria-label={trans.__('Source')}
        >
          {detail.source}
        </pre>
      )}
      {detail.outputs.length > 0 && (
        <Host
          className="dk-Step-outputs"
          drawKey={key}
          draw={host => renderers.outputs(detail.outputs, host)}
        />
      )}
      {step.files.length > 0 && (
        <>
          <h4>{trans.__('Files')}</h4>
          <ul className="dk-List">
            {step.files.map(file => (
              <li key={file.path} className="dk-Change">
                <span className={`dk-Change-kind dk-mod-${file.kind}`}>
                  {changeText(file.kind, trans)}
                </span>
                {file.blob !== null ? (
                  <a
                    className="dk-Link"
                    download=""
                    href={model.url({
                      sandbox: step.sandbox,
                      step: step.seq,
                      path: file.path
                    })}
                  >
                    {formatPath(file.path)}
                  </a>
                ) : (
                  <span>{formatPath(file.path)}</span>
                )}
                {file.kind !== 'deleted' && (
                  <span className="dk-Meta">{formatSize(file.size)}</span>
                )}
                {file.skipped && (
                  <span className="dk-Meta">{file.skipped}</span>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
      <StateChange step={step} />
      {step.status !== 'pending' && (
        <p>
          <FromState
            of={{ sandbox: step.sandbox, step: step.seq, path: '' }}
            stepId={step.id}
            href={model.directoryUrl({
              sandbox: step.sandbox,
              step: step.seq,
              path: ''
            })}
            ready={trans.__('Download all files of this step')}
            ask={trans.__('Get all files of this step')}
          />
        </p>
      )}
      <p className="dk-Meta">
        <span>{formatTime(step.created)}</span>
        {detail.engine && <span>{detail.engine}</span>}
        <span title={detail.key}>
          {trans.__('state %1', detail.key.slice(0, 8))}
        </span>
      </p>
    </>
  );
}

function changeText(
  kind: IStep['files'][number]['kind'],
  trans: Trans
): string {
  switch (kind) {
    case 'new':
      return trans.__('new');
    case 'changed':
      return trans.__('changed');
    case 'deleted':
      return trans.__('deleted');
    case 'output':
      return trans.__('whole output');
  }
}

/** Which variables a step saved or lost. */
function StateChange(props: { step: IStep }): JSX.Element | null {
  const { trans } = usePanel();
  const saved = namesOf(props.step.state['saved']);
  const lost = lostNames(props.step).filter(item => item.isNew);
  if (saved.length === 0 && lost.length === 0) {
    return null;
  }
  return (
    <>
      <h4>{trans.__('Variables')}</h4>
      {saved.length > 0 && (
        <p className="dk-Names">
          {trans.__('Saved: %1', saved.slice(0, 50).join(', '))}
          {saved.length > 50 && ' …'}
        </p>
      )}
      {lost.map(item => (
        <p key={item.name} className="dk-Names dk-mod-warning">
          {trans.__('Lost: %1 (%2): %3', item.name, item.type, item.reason)}
        </p>
      ))}
    </>
  );
}

function namesOf(value: unknown): string[] {
  if (!Array.isArray(value)) {
    return [];
  }
  return value.map(item =>
    typeof item === 'object' && item !== null
      ? String((item as { name?: unknown }).name ?? '')
      : String(item)
  );
}
