/** Status: engine, limits, what is lost, and the notebook's sandboxes. */

import * as React from 'react';

import { chainOf, lastReport, usageOf } from '../model/files';
import { formatDuration, formatSize, formatTime } from '../model/format';
import type { ILostName, IPanelState, ISandbox } from '../tokens';
import { usePanel } from './context';
import { Notice, Placeholder, TextButton } from './parts';

type Trans = ReturnType<typeof usePanel>['trans'];

export function StatusView(props: { state: IPanelState }): JSX.Element {
  const { state } = props;
  const { actions, model, trans } = usePanel();
  React.useEffect(() => void model.refreshStatus(), []);
  return (
    <div className="dk-StatusView">
      {state.lost.length > 0 && (
        <section className="dk-Section">
          <h3>{trans.__('Lost variables')}</h3>
          <ul className="dk-List">
            {state.lost.map(item => (
              <LostRow key={item.name} item={item} state={state} />
            ))}
          </ul>
        </section>
      )}
      <section className="dk-Section">
        <h3>{trans.__('Sandbox')}</h3>
        {state.sandbox === null ? (
          <p className="dk-Hint">
            {trans.__('The first cell or upload makes one.')}
          </p>
        ) : (
          <>
            <SandboxFacts sandbox={state.sandbox} state={state} />
            <TextButton onClick={() => actions.restartAsNew()}>
              {trans.__('Restart as new…')}
            </TextButton>
          </>
        )}
      </section>
      <Engine state={state} />
      {state.sandboxes.length > 1 && <Older state={state} />}
    </div>
  );
}

function LostRow(props: { item: ILostName; state: IPanelState }): JSX.Element {
  const { item, state } = props;
  const { actions, trans } = usePanel();
  const step = chainOf(state.steps).find(
    one => one.execution_count === item.cell && one.cell_id !== null
  );
  const cellId = item.cell === null ? null : (step?.cell_id ?? null);
  return (
    <li className="dk-Lost">
      <code>{item.name}</code> <span className="dk-Meta">{item.type}</span>
      <p>{item.reason}</p>
      {item.cell !== null &&
        (cellId === null ? (
          <p>{trans.__('Run cell [%1] again.', item.cell)}</p>
        ) : (
          <TextButton onClick={() => actions.goToCell(cellId)}>
            {trans.__('Go to cell [%1] to run it again', item.cell)}
          </TextButton>
        ))}
    </li>
  );
}

function SandboxFacts(props: {
  sandbox: ISandbox;
  state: IPanelState;
}): JSX.Element {
  const { sandbox, state } = props;
  const { trans } = usePanel();
  const total = (name: string) =>
    state.steps.reduce((sum, step) => sum + (usageOf(step, name) ?? 0), 0);
  const peak = state.steps.reduce(
    (most, step) => Math.max(most, usageOf(step, 'memory_bytes') ?? 0),
    0
  );
  const report = lastReport(state.steps);
  const saved = report?.state['saved'];
  return (
    <Facts
      facts={[
        [trans.__('Id'), <code key="id">{sandbox.id.slice(0, 12)}</code>],
        [trans.__('Begun'), formatTime(sandbox.created)],
        [trans.__('State'), stateText(sandbox, trans)],
        [trans.__('Steps'), String(state.steps.length)],
        [trans.__('CPU time'), formatDuration(total('cpu_seconds'))],
        [trans.__('Largest memory'), peak > 0 ? formatSize(peak) : ''],
        [
          trans.__('Results'),
          formatSize(state.results.reduce((sum, file) => sum + file.size, 0))
        ],
        [
          trans.__('Last cell saved'),
          Array.isArray(saved)
            ? trans._n('%1 variable', '%1 variables', saved.length)
            : ''
        ]
      ]}
    />
  );
}

function Engine(props: { state: IPanelState }): JSX.Element {
  const { state } = props;
  const { trans } = usePanel();
  const status = state.status;
  if (status === null) {
    return (
      <section className="dk-Section">
        <h3>{trans.__('Engine')}</h3>
        {state.error ? (
          <Notice kind="error">{state.error}</Notice>
        ) : (
          <Placeholder busy title={trans.__('Loading')} />
        )}
      </section>
    );
  }
  const { engine, limits } = status;
  const reasons = textsOf(engine.reasons);
  const remedies = textsOf(engine.remedies);
  const base = typeof engine.base === 'string' ? engine.base : '';
  const rest = Object.entries(engine)
    .filter(([name]) => !TOLD.has(name))
    .map(([name, value]): [string, string] => [
      words(name),
      plain(value, trans)
    ]);
  return (
    <>
      <section className="dk-Section">
        <h3>{trans.__('Engine')}</h3>
        {!status.enabled && (
          <Notice kind="warning">
            {trans.__('Running cells is switched off by the administrator.')}
          </Notice>
        )}
        {!engine.available && (
          <Notice kind="error">{[...reasons, ...remedies].join(' ')}</Notice>
        )}
        <Facts
          facts={[
            [trans.__('Name'), engine.name],
            [
              trans.__('Works here'),
              engine.available ? trans.__('yes') : trans.__('no')
            ],
            [trans.__('Python'), plain(engine.python, trans)],
            [
              trans.__('Base'),
              base && (
                <code title={base}>
                  {base.slice(0, 12)}
                  {engine.base_built === false && trans.__(' (not built yet)')}
                </code>
              )
            ],
            [trans.__('Packages'), status.packages.join(', ')],
            [trans.__('Network'), status.network],
            ['dagger_kernel', status.version]
          ]}
        />
        {rest.length > 0 && (
          <details>
            <summary>{trans.__('More')}</summary>
            <Facts facts={rest} />
          </details>
        )}
      </section>
      <section className="dk-Section">
        <h3>{trans.__('Limits of one cell')}</h3>
        <Facts
          facts={Object.entries(limits).map(([name, value]) => [
            limitName(name, trans),
            limitText(name, value)
          ])}
        />
      </section>
    </>
  );
}

/** What the engine tells and the first list shows. */
const TOLD = new Set([
  'available',
  'base',
  'base_built',
  'engine',
  'name',
  'network',
  'python',
  'reasons',
  'remedies'
]);

function Older(props: { state: IPanelState }): JSX.Element {
  const { state } = props;
  const { actions, model, trans } = usePanel();
  return (
    <section className="dk-Section">
      <h3>{trans.__("This notebook's sandboxes")}</h3>
      {state.pinned && (
        <TextButton onClick={() => void model.show(null)}>
          {trans.__('Show the newest')}
        </TextButton>
      )}
      <ul className="dk-List">
        {state.sandboxes.map(sandbox => {
          const shown = sandbox.id === state.sandbox?.id;
          return (
            <li key={sandbox.id} className="dk-Older" aria-current={shown}>
              <div className="dk-FileRow-main">
                <code>{sandbox.id.slice(0, 12)}</code>
                <div className="dk-Meta">
                  <span>{formatTime(sandbox.created)}</span>
                  <span>{trans._n('%1 step', '%1 steps', sandbox.steps)}</span>
                  <span>{stateText(sandbox, trans)}</span>
                </div>
              </div>
              {shown ? (
                <span className="dk-Meta">{trans.__('shown')}</span>
              ) : (
                <>
                  <TextButton onClick={() => void model.show(sandbox.id)}>
                    {trans.__('Look')}
                  </TextButton>
                  <TextButton
                    disabled={sandbox.state === 'purged' || sandbox.steps === 0}
                    onClick={() => actions.reopen(sandbox)}
                  >
                    {trans.__('Reopen…')}
                  </TextButton>
                </>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Facts(props: { facts: [string, React.ReactNode][] }): JSX.Element {
  return (
    <dl className="dk-Facts">
      {props.facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <React.Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </React.Fragment>
        ))}
    </dl>
  );
}

function stateText(sandbox: ISandbox, trans: Trans): string {
  switch (sandbox.state) {
    case 'ended':
      return trans.__('ended by a restart');
    case 'purged':
      return trans.__('purged');
    default:
      return sandbox.parent_step === null
        ? trans.__('open')
        : trans.__('open, continues an older one');
  }
}

function limitName(name: string, trans: Trans): string {
  const names: Record<string, string> = {
    cpu_seconds: trans.__('CPU time'),
    memory_bytes: trans.__('Memory'),
    wall_seconds: trans.__('Wall-clock time'),
    output_bytes: trans.__('Output shown'),
    kept_output_bytes: trans.__('Output kept'),
    file_bytes: trans.__('One file'),
    export_files: trans.__('Files exported'),
    processes: trans.__('Processes'),
    open_files: trans.__('Open files'),
    disk_bytes: trans.__('Disk written')
  };
  return names[name] ?? words(name);
}

function limitText(name: string, value: number): string {
  if (name.endsWith('_seconds')) {
    return formatDuration(value);
  }
  return name.endsWith('_bytes') ? formatSize(value) : String(value);
}

function words(name: string): string {
  const text = name.replace(/_/g, ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function plain(value: unknown, trans: Trans): string {
  if (typeof value === 'boolean') {
    return value ? trans.__('yes') : trans.__('no');
  }
  return typeof value === 'string' || typeof value === 'number'
    ? String(value)
    : '';
}
