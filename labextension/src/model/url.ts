/** Addresses of the REST API. */

import type { IFileRef } from '../tokens';

/**
 * Encode a text for a URL.
 *
 * Bytes of file names that are no UTF-8 arrive as lone surrogates (Python's `surrogateescape`); they go
 * back as the bytes they were. `encodeURIComponent` would throw.
 */
export function encode(text: string): string {
  let encoded = '';
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code >= 0xdc80 && code <= 0xdcff) {
      encoded += '%' + (code - 0xdc00).toString(16).toUpperCase();
    } else if (code >= 0xd800 && code <= 0xdfff) {
      encoded += '%EF%BF%BD';
    } else {
      encoded += encodeURIComponent(character);
    }
  }
  return encoded;
}

/** Encode a path, keeping its slashes. */
export function encodePath(path: string): string {
  return path.split('/').map(encode).join('/');
}

/** The address of a step's file below the API's root. */
export function artifactPath(file: IFileRef): string {
  return `sandboxes/${encode(file.sandbox)}/artifacts/${file.step}/${encodePath(file.path)}`;
}

/** The address of a file in the state after a step, exported or not, below the API's root. */
export function statePath(file: IFileRef): string {
  return `sandboxes/${encode(file.sandbox)}/files/${encodePath(file.path)}?step=${file.step}`;
}

/** The address of an archive of a directory in the state after a step; its path empty: the home. */
export function directoryPath(directory: IFileRef): string {
  const { sandbox, step, path } = directory;
  return `sandboxes/${encode(sandbox)}/archive?step=${step}&directory=${encodePath(path)}`;
}

/**
 * The address of an archive below the API's root.
 *
 * @param files Named by step ids where they come from several sandboxes.
 */
export function archivePath(sandbox: string, files: IFileRef[]): string {
  const query = files.map(file => `file=${file.step}/${encodePath(file.path)}`);
  return `sandboxes/${encode(sandbox)}/archive?${query.join('&')}`;
}
