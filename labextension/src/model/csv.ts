/** A reader of delimited text (RFC 4180, forgiving). */

export interface ITable {
  header: string[];
  rows: string[][];
  /** Whether rows were left out. */
  cut: boolean;
}

/** The delimiter that the first lines use: the one that occurs most, outside quotes. */
export function guessDelimiter(text: string): string {
  const counts: Record<string, number> = { ',': 0, ';': 0, '\t': 0, '|': 0 };
  let quoted = false;
  for (const character of text.slice(0, 8192)) {
    if (character === '"') {
      quoted = !quoted;
    } else if (!quoted && character in counts) {
      counts[character] += 1;
    }
  }
  const best = Object.entries(counts).sort((a, b) => b[1] - a[1])[0];
  return best[1] > 0 ? best[0] : ',';
}

/**
 * Read delimited text.
 *
 * @param text The text; a byte order mark is skipped.
 * @param cut Whether the text is only the beginning: then its last, broken row is left out.
 * @param maxRows Rows to read at most.
 */
export function parseCsv(
  text: string,
  cut = false,
  maxRows = Number.POSITIVE_INFINITY,
  delimiter = guessDelimiter(text)
): ITable {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  let full = false;

  const endRow = () => {
    // A blank line is no row, but a line with an empty quoted field is.
    if (row.length > 1 || row[0] !== '') {
      rows.push(row);
    }
    row = [];
    full = rows.length > maxRows;
  };

  while (at < text.length && !full) {
    let field = '';
    if (text[at] === '"') {
      at += 1;
      for (;;) {
        const quote = text.indexOf('"', at);
        if (quote < 0) {
          field += text.slice(at);
          at = text.length;
          break;
        }
        field += text.slice(at, quote);
        at = quote + 1;
        if (text[at] !== '"') {
          break;
        }
        field += '"';
        at += 1;
      }
    }
    const start = at;
    while (
      at < text.length &&
      text[at] !== delimiter &&
      text[at] !== '\n' &&
      text[at] !== '\r'
    ) {
      at += 1;
    }
    row.push(field + text.slice(start, at));
    if (at >= text.length) {
      break;
    }
    if (text[at] === delimiter) {
      at += 1;
      if (at >= text.length) {
        row.push('');
      }
      continue;
    }
    at += text[at] === '\r' && text[at + 1] === '\n' ? 2 : 1;
    endRow();
  }
  if (row.length > 0 && !cut && !full) {
    endRow();
  }
  const [header = [], ...body] = rows;
  const width = rows.reduce((most, one) => Math.max(most, one.length), 0);
  while (header.length < width) {
    header.push('');
  }
  const kept = body.slice(0, Math.max(0, maxRows - 1));
  return { header, rows: kept, cut: cut || kept.length < body.length || full };
}

/** Whether all values of a column are numbers: such columns are set right. */
export function isNumeric(table: ITable, column: number): boolean {
  const sample = table.rows.slice(0, 200).map(row => row[column] ?? '');
  const filled = sample.filter(value => value.trim() !== '');
  return (
    filled.length > 0 &&
    filled.every(value => /^[-+]?[\d.,_\s]*\d(e[-+]?\d+)?%?$/i.test(value))
  );
}
