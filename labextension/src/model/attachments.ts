/** Files attached to cells, as the notebook format writes them down. */

/** A cell, as far as it matters here. */
export interface IAttachingCell {
  id?: unknown;
  /** Name -> media type -> content. */
  attachments?: unknown;
}

/** A file attached to a cell. */
export interface IAttachment {
  /** Identifies the file and its content. */
  key: string;
  name: string;
  mime: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Return the files attached to cells; what is malformed is passed over. */
export function attachmentsOf(cells: Iterable<IAttachingCell>): IAttachment[] {
  const found: IAttachment[] = [];
  for (const cell of cells) {
    for (const [name, bundle] of entries(cell.attachments)) {
      const [first] = entries(bundle);
      const text = first && textOf(first[1]);
      if (first && text !== undefined) {
        const key = `${String(cell.id)}\n${name}\n${text}`;
        found.push({
          key,
          name,
          mime: first[0],
          bytes: bytesOf(first[0], text)
        });
      }
    }
  }
  return found;
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value)
    : [];
}

function textOf(value: unknown): string | undefined {
  const text = Array.isArray(value) ? value.join('') : value;
  return typeof text === 'string' ? text : undefined;
}

/** Base64, but what came from an open text file may be its text. */
function bytesOf(mime: string, text: string): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
    if (mime.startsWith('text/')) {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    }
  } catch {
    bytes = new TextEncoder().encode(text);
  }
  return bytes;
}
