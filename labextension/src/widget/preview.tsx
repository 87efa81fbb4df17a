/** The content of one file. */

import * as React from 'react';

import { parseCsv } from '../model/csv';
import { formatPath, formatSize } from '../model/format';
import {
  objectMime,
  prettyJson,
  previewKind,
  TEXT_BYTES,
  type PreviewKind
} from '../model/preview';
import type { IFileEntry } from '../tokens';
import { usePanel } from './context';
import { FromState } from './fromstate';
import { DataTable } from './grid';
import { Host, Notice, Placeholder, TextButton, useLoaded } from './parts';

/** Draw a file as what it is. */
export function Preview(props: { file: IFileEntry }): JSX.Element {
  const { file } = props;
  const { trans } = usePanel();
  if (file.blob === null) {
    return <NotExported file={file} />;
  }
  const kind = previewKind(file);
  switch (kind) {
    case 'none':
      return (
        <Placeholder title={trans.__('No preview for this kind of file')}>
          <p>
            {file.mime}, {formatSize(file.size)}
          </p>
        </Placeholder>
      );
    case 'image':
    case 'pdf':
      return <ObjectPreview file={file} kind={kind} />;
    default:
      return <TextPreview file={file} kind={kind} />;
  }
}

/** The bytes are only in the sandbox. */
function NotExported(props: { file: IFileEntry }): JSX.Element {
  const { file } = props;
  const { model, trans } = usePanel();
  return (
    <Placeholder
      title={trans.__('This file was not kept outside of the sandbox')}
    >
      <p>{file.skipped ?? ''}</p>
      <p>{trans.__('It is still there for the next cells.')}</p>
      <FromState
        of={file}
        stepId={file.stepId}
        href={model.stateUrl(file)}
        ready={trans.__('Download from the sandbox')}
        ask={trans.__('Get it from the sandbox')}
      />
    </Placeholder>
  );
}

function ObjectPreview(props: {
  file: IFileEntry;
  kind: 'image' | 'pdf';
}): JSX.Element {
  const { file } = props;
  const { model, trans } = usePanel();
  const loaded = useLoaded(keyOf(file), () => model.bytes(file));
  const [url, setUrl] = React.useState('');
  React.useEffect(() => {
    if (!loaded.value) {
      return;
    }
    // The type is ours, not the server's: the browser will not take it for anything else.
    const made = URL.createObjectURL(
      new Blob([loaded.value], { type: objectMime(file) })
    );
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [loaded.value]);
  if (loaded.error) {
    return <Notice kind="error">{loaded.error}</Notice>;
  }
  if (!url) {
    return <Placeholder busy title={trans.__('Loading')} />;
  }
  const name = formatPath(file.path);
  return props.kind === 'image' ? (
    // Scripts in an SVG do not run in an <img>.
    <div className="dk-Preview-image">
      <img src={url} alt={name} />
    </div>
  ) : (
    <iframe className="dk-Preview-frame" src={url} title={name} />
  );
}

function TextPreview(props: {
  file: IFileEntry;
  kind: PreviewKind;
}): JSX.Element {
  const { file, kind } = props;
  const { model, trans } = usePanel();
  const loaded = useLoaded(keyOf(file), () => model.text(file, TEXT_BYTES));
  if (loaded.error) {
    return <Notice kind="error">{loaded.error}</Notice>;
  }
  if (!loaded.value) {
    return <Placeholder busy title={trans.__('Loading')} />;
  }
  const { text, cut } = loaded.value;
  return (
    <>
      {cut && (
        <Notice kind="info">
          {trans.__(
            'The first %1 of %2 are shown.',
            formatSize(TEXT_BYTES),
            formatSize(file.size)
          )}
        </Notice>
      )}
      {text === '' ? (
        <Placeholder title={trans.__('The file is empty')} />
      ) : (
        <TextBody file={file} kind={kind} text={text} cut={cut} />
      )}
    </>
  );
}

function TextBody(props: {
  file: IFileEntry;
  kind: PreviewKind;
  text: string;
  cut: boolean;
}): JSX.Element {
  const { file, kind, text, cut } = props;
  const { renderers } = usePanel();
  const name = formatPath(file.path);
  const delimiter = file.path.toLowerCase().endsWith('.tsv') ? '\t' : undefined;
  const table = React.useMemo(
    () =>
      kind === 'table' ? parseCsv(text, cut, undefined, delimiter) : undefined,
    [kind, text]
  );
  if (table) {
    return <DataTable table={table} label={name} />;
  }
  switch (kind) {
    case 'markdown':
      return (
        <Host
          className="dk-Preview-markdown"
          drawKey={keyOf(file)}
          draw={host => renderers.markdown(text, host)}
        />
      );
    case 'html':
      return <HtmlBody name={name} text={text} />;
    default:
      return (
        <pre className="dk-Preview-text" tabIndex={0} aria-label={name}>
          {kind === 'json' && !cut ? prettyJson(text) : text}
        </pre>
      );
  }
}

/** A page from the sandbox: without scripts at first, and never with access to JupyterLab. */
function HtmlBody(props: { name: string; text: string }): JSX.Element {
  const { trans } = usePanel();
  const [scripts, setScripts] = React.useState(false);
  return (
    <>
      {!scripts && /<script/i.test(props.text) && (
        <Notice
          kind="info"
          action={
            <TextButton onClick={() => setScripts(true)}>
              {trans.__('Run scripts')}
            </TextButton>
          }
        >
          {trans.__('Scripts in this page are off.')}
        </Notice>
      )}
      <iframe
        key={String(scripts)}
        className="dk-Preview-frame"
        title={props.name}
        sandbox={scripts ? 'allow-scripts' : ''}
        srcDoc={props.text}
      />
    </>
  );
}

function keyOf(file: IFileEntry): string {
  return `${file.sandbox}/${file.step}/${file.path}`;
}
