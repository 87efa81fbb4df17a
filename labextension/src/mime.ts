/** Draws the bundle that the kernel shows after a cell that made files. */

import { PageConfig, URLExt } from '@jupyterlab/coreutils';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { formatPath, formatSize } from './model/format';
import { artifactPath } from './model/url';
import { DOMAIN, FILES_MIME, type IFileRef, OPEN_FILE_EVENT } from './tokens';

/** What the kernel sends. Checked: a notebook's file may hold anything. */
interface IBundle {
  sandbox: string;
  step: string;
  files: {
    path: string;
    kind: string;
    size: number;
    blob: string | null;
    skipped: string | null;
  }[];
  more: number;
}

/** Return a bundle, or null if the data is none. */
export function readBundle(data: unknown): IBundle | null {
  if (typeof data !== 'object' || data === null) {
    return null;
  }
  const { sandbox, step, files, more } = data as Record<string, unknown>;
  const named = typeof step === 'string' || typeof step === 'number';
  if (typeof sandbox !== 'string' || !named || !Array.isArray(files)) {
    return null;
  }
  return {
    sandbox,
    step: String(step),
    files: files
      .filter(file => typeof file?.path === 'string')
      .map(file => ({
        path: file.path,
        kind: String(file.kind ?? ''),
        size: typeof file.size === 'number' ? file.size : 0,
        blob: typeof file.blob === 'string' ? file.blob : null,
        skipped: typeof file.skipped === 'string' ? file.skipped : null
      })),
    more: typeof more === 'number' ? more : 0
  };
}

/** The renderer: a short list with a name to open and a link to download. */
export class FilesRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(options: IRenderMime.IRendererOptions) {
    super();
    this._mime = options.mimeType;
    // Without a translator, as in nbviewer's renderers, English.
    this._trans = (options.translator ?? nullTranslator).load(DOMAIN);
    this.addClass('dk-Bundle');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const bundle = readBundle(model.data[this._mime]);
    if (bundle === null) {
      this.node.textContent = String(model.data['text/plain'] ?? '');
      return;
    }
    const list = document.createElement('ul');
    list.setAttribute('aria-label', this._trans.__('Files of this cell'));
    for (const file of bundle.files) {
      list.append(this._row(bundle, file));
    }
    if (bundle.more > 0) {
      const more = document.createElement('li');
      more.textContent = this._trans.__('… and %1 more', bundle.more);
      list.append(more);
    }
    this.node.replaceChildren(list);
  }

  private _row(bundle: IBundle, file: IBundle['files'][number]): HTMLElement {
    const { sandbox, step } = bundle;
    const name = formatPath(file.path);
    const row = document.createElement('li');
    if (file.blob === null) {
      row.append(span('dk-Bundle-name', name));
    } else {
      const ref: IFileRef = { sandbox, step, path: file.path };
      const open = document.createElement('button');
      open.type = 'button';
      open.className = 'dk-Link dk-Bundle-name';
      open.textContent = name;
      open.title = this._trans.__('Show in the sandbox panel');
      // The renderer knows no application; the panel, if there is one, hears this.
      open.addEventListener('click', () =>
        open.dispatchEvent(
          new CustomEvent(OPEN_FILE_EVENT, { bubbles: true, detail: ref })
        )
      );
      row.append(open);
    }
    row.append(span('dk-Meta', formatSize(file.size)));
    if (file.skipped !== null) {
      row.append(
        span(
          'dk-Meta dk-mod-warning',
          this._trans.__('not exported: %1', file.skipped)
        )
      );
    } else if (file.blob !== null) {
      const link = document.createElement('a');
      link.className = 'dk-Link';
      link.href = URLExt.join(
        PageConfig.getBaseUrl(),
        'dagger-kernel/api',
        artifactPath({ sandbox, step, path: file.path })
      );
      link.download = '';
      link.textContent = this._trans.__('Download');
      link.setAttribute('aria-label', this._trans.__('Download %1', name));
      row.append(link);
    }
    return row;
  }

  private readonly _mime: string;
  private readonly _trans: IRenderMime.TranslationBundle;
}

function span(className: string, text: string): HTMLElement {
  const element = document.createElement('span');
  element.className = className;
  element.textContent = text;
  return element;
}

const extension: IRenderMime.IExtension = {
  id: 'dagger-kernel-lab:files',
  description: 'Draws the files that a cell of a dagger_kernel sandbox made.',
  dataType: 'json',
  rank: 0,
  rendererFactory: {
    safe: true,
    mimeTypes: [FILES_MIME],
    createRenderer: options => new FilesRenderer(options)
  }
};

export default extension;
