/** Which preview fits a file. */

export type PreviewKind =
  'image' | 'table' | 'json' | 'markdown' | 'html' | 'pdf' | 'text' | 'none';

/** Bytes of text that a preview reads. */
export const TEXT_BYTES = 2 * 1024 * 1024;

/** Bytes of an image or document that a preview reads. */
export const OBJECT_BYTES = 64 * 1024 * 1024;

const BY_MIME: Record<string, PreviewKind> = {
  'application/json': 'json',
  'application/ld+json': 'json',
  'application/geo+json': 'json',
  'application/pdf': 'pdf',
  'application/javascript': 'text',
  'application/sql': 'text',
  'application/toml': 'text',
  'application/x-ipynb+json': 'json',
  'application/x-ndjson': 'text',
  'application/x-python': 'text',
  'application/x-sh': 'text',
  'application/x-yaml': 'text',
  'application/xml': 'text',
  'application/yaml': 'text',
  'image/avif': 'image',
  'image/bmp': 'image',
  'image/gif': 'image',
  'image/jpeg': 'image',
  'image/png': 'image',
  'image/svg+xml': 'image',
  'image/webp': 'image',
  'image/x-icon': 'image',
  'image/vnd.microsoft.icon': 'image',
  'text/csv': 'table',
  'text/html': 'html',
  'text/markdown': 'markdown',
  'text/tab-separated-values': 'table'
};

// Content alone cannot tell these from plain text.
const BY_NAME: Record<string, PreviewKind> = {
  csv: 'table',
  tsv: 'table',
  json: 'json',
  geojson: 'json',
  ipynb: 'json',
  md: 'markdown',
  markdown: 'markdown',
  htm: 'html',
  html: 'html',
  svg: 'image'
};

/** Return the preview for a file. */
export function previewKind(file: {
  mime: string;
  path: string;
  size: number;
}): PreviewKind {
  const mime = file.mime.split(';')[0].trim().toLowerCase();
  const extension = /\.([^./]+)$/.exec(file.path)?.[1].toLowerCase() ?? '';
  let kind = BY_MIME[mime] ?? (mime.startsWith('text/') ? 'text' : 'none');
  if (kind === 'text' && mime.startsWith('text/')) {
    kind = BY_NAME[extension] ?? kind;
  }
  const large = kind === 'image' || kind === 'pdf' || kind === 'html';
  return large && file.size > OBJECT_BYTES ? 'none' : kind;
}

/** The media type that the browser is told for an image or a document. */
export function objectMime(file: { mime: string; path: string }): string {
  const mime = file.mime.split(';')[0].trim().toLowerCase();
  return /\.svg$/i.test(file.path) && mime.startsWith('text/')
    ? 'image/svg+xml'
    : mime;
}

/** JSON, set out; text that is none is returned unchanged. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
