/** Files: what came out of the sandbox, and what was put in. */

import {
  closeIcon,
  downloadIcon,
  fileUploadIcon,
  launcherIcon,
  saveIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { formatPath, formatSize, formatTime } from '../model/format';
import { previewKind } from '../model/preview';
import type { IFileEntry, IPanelState, IUpload } from '../tokens';
import { usePanel } from './context';
import { iconOf } from './icons';
import {
  DownloadLink,
  IconButton,
  Notice,
  Placeholder,
  TextButton
} from './parts';
import { Preview } from './preview';

/** With more files than this there is a filter. */
const FILTER_FROM = 12;

/** Rows that a list shows before it asks. */
const ROWS = 200;

export function FilesView(props: {
  state: IPanelState;
  open: string | null;
  onOpen: (key: string | null) => void;
}): JSX.Element {
  const { state } = props;
  const { model, trans } = usePanel();
  const [over, setOver] = React.useState(false);
  const [chosen, setChosen] = React.useState<ReadonlySet<string>>(new Set());
  const [filter, setFilter] = React.useState('');
  const input = React.useRef<HTMLInputElement>(null);
  const all = [...state.results, ...state.attachments];
  const file = all.find(one => fileKey(one) === props.open);
  if (file) {
    return <FileDetail file={file} onClose={() => props.onOpen(null)} />;
  }
  const matching = (files: IFileEntry[]) => {
    const wanted = filter.trim().toLowerCase();
    return wanted === ''
      ? files
      : files.filter(one => one.path.toLowerCase().includes(wanted));
  };
  const drop = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(false);
    const { files, folders } = contentOf(event.dataTransfer);
    folders.forEach(name =>
      model.notify(trans.__('%1 is a folder; drop its files.', name))
    );
    void model.upload(files);
  };
  const selected = all.filter(one => chosen.has(fileKey(one)) && one.blob);
  const toggle = (keys: string[], on: boolean) => {
    const next = new Set(chosen);
    keys.forEach(key => (on ? next.add(key) : next.delete(key)));
    setChosen(next);
  };
  return (
    <div
      className={'dk-Files' + (over ? ' dk-mod-over' : '')}
      onDragOver={event => {
        if (event.dataTransfer.types.includes('Files')) {
          event.preventDefault();
          event.dataTransfer.dropEffect = 'copy';
          setOver(true);
        }
      }}
      onDragLeave={event => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) {
          setOver(false);
        }
      }}
      onDrop={drop}
    >
      <div className="dk-Toolbar" role="toolbar" aria-label={trans.__('Files')}>
        <TextButton onClick={() => input.current?.click()}>
          <fileUploadIcon.react tag="span" aria-hidden="true" />
          {trans.__('Upload')}
        </TextButton>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label={trans.__('Files to upload')}
          onChange={event => {
            const files = Array.from(event.target.files ?? []);
            event.target.value = '';
            void model.upload(files);
          }}
        />
        {selected.length > 0 && (
          <a
            className="dk-Button"
            download=""
            href={
              selected.length === 1
                ? model.url(selected[0])
                : model.archiveUrl(
                    selected.map(one => ({ ...one, step: one.stepId }))
                  )
            }
          >
            <downloadIcon.react tag="span" aria-hidden="true" />
            {trans._n('Download %1 file', 'Download %1 files', selected.length)}
          </a>
        )}
      </div>
      <Uploads uploads={state.uploads} />
      {all.length > FILTER_FROM && (
        <input
          type="search"
          className="dk-Filter"
          value={filter}
          placeholder={trans.__('Filter by name')}
          aria-label={trans.__('Filter by name')}
          onChange={event => setFilter(event.target.value)}
        />
      )}
      <Section
        title={trans.__('Results')}
        files={matching(state.results)}
        chosen={chosen}
        onToggle={toggle}
        onOpen={props.onOpen}
        empty={trans.__('Files that cells write appear here.')}
      />
      <Section
        title={trans.__('Attachments')}
        files={matching(state.attachments)}
        chosen={chosen}
        onToggle={toggle}
        onOpen={props.onOpen}
        empty={trans.__(
          'Drop files here: the next cell finds them in attachments/.'
        )}
      />
      {over && (
        <div className="dk-DropHint" aria-hidden="true">
          {trans.__('Drop to put into the sandbox')}
        </div>
      )}
    </div>
  );
}

/** Files and folders of a drop. */
function contentOf(transfer: DataTransfer): {
  files: File[];
  folders: string[];
} {
  const entries = Array.from(transfer.items ?? []).map(item =>
    item.webkitGetAsEntry?.()
  );
  const files: File[] = [];
  const folders: string[] = [];
  Array.from(transfer.files).forEach((file, index) => {
    if (entries[index]?.isDirectory) {
      folders.push(file.name);
    } else {
      files.push(file);
    }
  });
  return { files, folders };
}

/** Identifies a file in the panel. */
export function fileKey(file: {
  sandbox: string;
  path: string;
  kind?: string;
}): string {
  return `${file.sandbox}/${file.path}`;
}

function Section(props: {
  title: string;
  files: IFileEntry[];
  chosen: ReadonlySet<string>;
  onToggle: (keys: string[], on: boolean) => void;
  onOpen: (key: string) => void;
  empty: string;
}): JSX.Element {
  const { files } = props;
  const { trans } = usePanel();
  const [shown, setShown] = React.useState(ROWS);
  const id = React.useId();
  const keys = files.filter(file => file.blob).map(fileKey);
  const all = keys.length > 0 && keys.every(key => props.chosen.has(key));
  return (
    <section className="dk-Section" aria-labelledby={id}>
      <div className="dk-Section-head">
        {keys.length > 1 && (
          <input
            type="checkbox"
            checked={all}
            aria-label={trans.__('Select all: %1', props.title)}
            onChange={event => props.onToggle(keys, event.target.checked)}
          />
        )}
        <h3 id={id}>
          {props.title} <span className="dk-Count">{files.length}</span>
        </h3>
      </div>
      {files.length === 0 ? (
        <p className="dk-Hint">{props.empty}</p>
      ) : (
        <ul className="dk-List">
          {files.slice(0, shown).map(file => (
            <FileRow
              key={fileKey(file)}
              file={file}
              chosen={props.chosen.has(fileKey(file))}
              onToggle={on => props.onToggle([fileKey(file)], on)}
              onOpen={() => props.onOpen(fileKey(file))}
            />
          ))}
        </ul>
      )}
      {files.length > shown && (
        <TextButton onClick={() => setShown(shown + 10 * ROWS)}>
          {trans.__('Show %1 more', files.length - shown)}
        </TextButton>
      )}
    </section>
  );
}

function FileRow(props: {
  file: IFileEntry;
  chosen: boolean;
  onToggle: (on: boolean) => void;
  onOpen: () => void;
}): JSX.Element {
  const { file } = props;
  const { model, trans } = usePanel();
  const name = formatPath(file.path.replace(/^attachments\//, ''));
  const Icon = iconOf(previewKind(file));
  return (
    <li className="dk-FileRow">
      <input
        type="checkbox"
        checked={props.chosen}
        disabled={file.blob === null}
        aria-label={trans.__('Select %1', name)}
        onChange={event => props.onToggle(event.target.checked)}
      />
      <Icon.react tag="span" className="dk-FileRow-icon" aria-hidden="true" />
      <div className="dk-FileRow-main">
        <button
          type="button"
          className="dk-Link dk-FileRow-name"
          title={name}
          onClick={props.onOpen}
        >
          {name}
        </button>
        <div className="dk-Meta">
          <span>{formatSize(file.size)}</span>
          <Origin file={file} />
          {file.versions > 1 && (
            <span>{trans.__('%1 versions', file.versions)}</span>
          )}
          {file.skipped && (
            <span className="dk-mod-warning">
              {trans.__('not exported: %1', file.skipped)}
            </span>
          )}
        </div>
      </div>
      {file.blob !== null && (
        <DownloadLink
          icon={downloadIcon}
          label={trans.__('Download %1', name)}
          href={model.url(file)}
        />
      )}
    </li>
  );
}

/** Where a file came from; a click goes to the cell. */
function Origin(props: { file: IFileEntry }): JSX.Element {
  const { file } = props;
  const { actions, trans } = usePanel();
  const cellId = file.cellId;
  const label =
    file.executionCount !== null
      ? trans.__('cell [%1]', file.executionCount)
      : trans.__('step %1', file.step);
  return cellId === null ? (
    <span title={formatTime(file.created)}>{label}</span>
  ) : (
    <button
      type="button"
      className="dk-Link"
      title={trans.__('Go to the cell: %1', file.title)}
      onClick={() => actions.goToCell(cellId)}
    >
      {label}
    </button>
  );
}

function FileDetail(props: {
  file: IFileEntry;
  onClose: () => void;
}): JSX.Element {
  const { file } = props;
  const { actions, model, trans } = usePanel();
  const name = formatPath(file.path);
  const heading = React.useRef<HTMLHeadingElement>(null);
  React.useEffect(() => heading.current?.focus(), [file.path]);
  return (
    <div
      className="dk-Detail"
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onClose();
        }
      }}
    >
      <div className="dk-Toolbar" role="toolbar" aria-label={name}>
        <TextButton onClick={props.onClose}>
          <span aria-hidden="true">‹</span> {trans.__('All files')}
        </TextButton>
        <span className="dk-Spring" />
        {file.blob !== null && (
          <>
            <IconButton
              icon={launcherIcon}
              label={trans.__('Open in a tab')}
              onClick={() => actions.openInTab(file)}
            />
            <IconButton
              icon={saveIcon}
              label={trans.__('Save a copy beside the notebook and open it')}
              onClick={() => actions.saveCopy(file)}
            />
            <DownloadLink
              icon={downloadIcon}
              label={trans.__('Download %1', name)}
              href={model.url(file)}
            />
          </>
        )}
      </div>
      <h3 ref={heading} tabIndex={-1} className="dk-Detail-title">
        {name}
      </h3>
      <div className="dk-Meta">
        <span>{formatSize(file.size)}</span>
        <span>{file.mime}</span>
        <Origin file={file} />
        <span>{formatTime(file.created)}</span>
      </div>
      <div className="dk-Detail-body">
        <Preview file={file} />
      </div>
    </div>
  );
}

function Uploads(props: { uploads: IUpload[] }): JSX.Element {
  const { model, trans } = usePanel();
  return (
    <>
      {props.uploads.map(upload => {
        const name =
          upload.names.length === 1
            ? formatPath(upload.names[0])
            : trans.__('%1 files', upload.names.length);
        const cancel = (
          <IconButton
            icon={closeIcon}
            label={
              upload.state === 'failed'
                ? trans.__('Dismiss')
                : trans.__('Cancel the upload of %1', name)
            }
            onClick={() => model.cancelUpload(upload.id)}
          />
        );
        if (upload.state === 'failed') {
          return (
            <Notice key={upload.id} kind="error" action={cancel}>
              {trans.__('%1 was not uploaded: %2', name, upload.message)}
            </Notice>
          );
        }
        return (
          <div key={upload.id} className="dk-Upload">
            <div className="dk-Upload-text">
              <span>{name}</span>
              <span>
                {upload.state === 'waiting'
                  ? trans.__('waits for the running cell')
                  : `${formatSize(upload.sent)} / ${formatSize(upload.total)}`}
              </span>
            </div>
            <progress
              aria-label={trans.__('Upload of %1', name)}
              max={Math.max(upload.total, 1)}
              value={upload.state === 'waiting' ? undefined : upload.sent}
            />
            {cancel}
          </div>
        );
      })}
    </>
  );
}

/** Shown where there is no notebook to have files. */
export function NoFiles(props: { text: string }): JSX.Element {
  return <Placeholder title={props.text} />;
}
