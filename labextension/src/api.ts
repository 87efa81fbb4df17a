/** The network: the REST API of `dagger_kernel.server`. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import { ApiError } from './model/model';
import {
  archivePath,
  artifactPath,
  directoryPath,
  encode,
  statePath
} from './model/url';
import type {
  IFileRef,
  ISandbox,
  ISandboxApi,
  IStatus,
  IStep,
  IStepDetail,
  IText,
  IUploaded
} from './tokens';

/** Talks to the server that JupyterLab came from. */
export class SandboxApi implements ISandboxApi<File> {
  constructor(settings: ServerConnection.ISettings, trans: TranslationBundle) {
    this._settings = settings;
    this._trans = trans;
    this._root = URLExt.join(settings.baseUrl, 'dagger-kernel', 'api') + '/';
  }

  async sandboxes(notebook: string): Promise<ISandbox[]> {
    const path = `sandboxes?notebook=${encode(notebook)}`;
    return (await this._json<{ sandboxes: ISandbox[] }>(path)).sandboxes;
  }

  sandbox(id: string): Promise<ISandbox> {
    return this._json(`sandboxes/${encode(id)}`);
  }

  cached(sandbox: string): Promise<{ cached: string[] }> {
    return this._json(`sandboxes/${encode(sandbox)}/cached`);
  }

  begin(notebook: string): Promise<ISandbox> {
    return this._json('sandboxes', { notebook });
  }

  steps(
    sandbox: string,
    after: number
  ): Promise<{ steps: IStep[]; more: boolean }> {
    return this._json(`sandboxes/${encode(sandbox)}/steps?after=${after}`);
  }

  inherited(sandbox: string): Promise<{ steps: IStep[] }> {
    return this._json(`sandboxes/${encode(sandbox)}/inherited`);
  }

  step(sandbox: string, seq: number): Promise<IStepDetail> {
    return this._json(`sandboxes/${encode(sandbox)}/steps/${seq}`);
  }

  status(): Promise<IStatus> {
    return this._json('status');
  }

  reopen(sandbox: string): Promise<ISandbox> {
    return this._json(`sandboxes/${encode(sandbox)}/reopen`, {});
  }

  restart(sandbox: string): Promise<ISandbox> {
    return this._json(`sandboxes/${encode(sandbox)}/restart-as-new`, {});
  }

  async restore(sandbox: string, step: number | string): Promise<void> {
    await this._json(`sandboxes/${encode(sandbox)}/steps/${step}/restore`, {});
  }

  rewind(sandbox: string, seq: number): Promise<IStep> {
    return this._json(`sandboxes/${encode(sandbox)}/rewind`, { step: seq });
  }

  async bytes(file: IFileRef): Promise<Blob> {
    return (await this._fetch(artifactPath(file))).blob();
  }

  async text(file: IFileRef, maxBytes: number): Promise<IText> {
    const response = await this._fetch(artifactPath(file), {
      headers: { Range: `bytes=0-${maxBytes - 1}` }
    }).catch(error => {
      // An empty file has no range.
      if (error instanceof ApiError && error.status === 416) {
        return null;
      }
      throw error;
    });
    if (response === null) {
      return { text: '', cut: false };
    }
    const size = /\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '');
    // Bytes of a character that was cut in half are dropped with the decoder.
    const cut = size !== null && Number(size[1]) > maxBytes;
    const decoder = new TextDecoder('utf-8');
    const bytes = await response.arrayBuffer();
    return { text: decoder.decode(bytes, { stream: cut }), cut };
  }

  url(file: IFileRef): string {
    return this._root + artifactPath(file);
  }

  stateUrl(file: IFileRef): string {
    return this._root + statePath(file);
  }

  directoryUrl(directory: IFileRef): string {
    return this._root + directoryPath(directory);
  }

  archiveUrl(sandbox: string, files: IFileRef[]): string {
    return this._root + archivePath(sandbox, files);
  }

  /** Upload with progress, which `fetch` does not tell. */
  upload(
    sandbox: string,
    files: File[],
    progress: (sent: number, total: number) => void,
    signal: AbortSignal
  ): Promise<IUploaded> {
    const form = new FormData();
    for (const file of files) {
      // Browsers change some characters of a file's name; the field before it has the exact one.
      form.append('name', JSON.stringify(file.name));
      form.append('file', file, file.name);
    }
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open('POST', `${this._root}sandboxes/${encode(sandbox)}/uploads`);
      request.responseType = 'text';
      if (this._settings.token) {
        request.setRequestHeader(
          'Authorization',
          `token ${this._settings.token}`
        );
      }
      const xsrf = /(?:^|;\s*)_xsrf=([^;]*)/.exec(document.cookie)?.[1];
      if (xsrf !== undefined) {
        request.setRequestHeader('X-XSRFToken', xsrf);
      }
      request.upload.onprogress = event => progress(event.loaded, event.total);
      request.onload = () => {
        if (request.status >= 200 && request.status < 300) {
          resolve(JSON.parse(request.responseText));
        } else {
          reject(errorOf(request.status, request.responseText, this._trans));
        }
      };
      request.onerror = () => reject(noAnswer(this._trans));
      request.onabort = () =>
        reject(new ApiError(this._trans.__('Cancelled.'), 0));
      signal.addEventListener('abort', () => request.abort());
      request.send(form);
    });
  }

  private async _json<T>(path: string, body?: unknown): Promise<T> {
    const init: RequestInit =
      body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await this._fetch(path, init);
    return response.json();
  }

  private async _fetch(
    path: string,
    init: RequestInit = {}
  ): Promise<Response> {
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(
        this._root + path,
        init,
        this._settings
      );
    } catch {
      throw noAnswer(this._trans);
    }
    if (!response.ok) {
      throw errorOf(response.status, await response.text(), this._trans);
    }
    return response;
  }

  private readonly _settings: ServerConnection.ISettings;
  private readonly _root: string;
  private readonly _trans: TranslationBundle;
}

function noAnswer(trans: TranslationBundle): ApiError {
  return new ApiError(trans.__('The Jupyter server does not answer.'), 0);
}

/** Read the server's words; a proxy may have answered in its place. */
function errorOf(
  status: number,
  text: string,
  trans: TranslationBundle
): ApiError {
  try {
    const body = JSON.parse(text);
    if (typeof body.message === 'string') {
      return new ApiError(
        body.message,
        status,
        String(body.error ?? ''),
        String(body.remedy ?? '')
      );
    }
  } catch {
    // Not JSON.
  }
  return new ApiError(
    status === 404
      ? trans.__('The server has no dagger_kernel extension.')
      : trans.__('The server answered with status %1.', status),
    status
  );
}
