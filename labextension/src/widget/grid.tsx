/** A table of any length: only the rows in sight are in the document. */

import * as React from 'react';

import { isNumeric, type ITable } from '../model/csv';

export const ROW_HEIGHT = 24;
const SPARE = 10;
const COLUMNS_MOST = 200;

/** Return the rows to draw. */
export function windowOf(
  scrollTop: number,
  height: number,
  count: number
): [number, number] {
  const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - SPARE);
  const last = Math.ceil((scrollTop + height) / ROW_HEIGHT) + SPARE;
  return [Math.min(first, count), Math.min(last, count)];
}

/** Widths of the columns in characters, by what they hold. */
export function widthsOf(table: ITable): number[] {
  return table.header.map((name, column) => {
    let most = name.length;
    for (const row of table.rows.slice(0, 200)) {
      most = Math.max(most, (row[column] ?? '').length);
    }
    return Math.min(Math.max(most, 3), 40) + 2;
  });
}

export function DataTable(props: {
  table: ITable;
  label: string;
}): JSX.Element {
  const { table } = props;
  const [scrollTop, setScrollTop] = React.useState(0);
  const [height, setHeight] = React.useState(400);
  const ref = React.useRef<HTMLDivElement>(null);
  const columns = Math.min(table.header.length, COLUMNS_MOST);
  const widths = React.useMemo(() => widthsOf(table), [table]);
  const right = React.useMemo(
    () => table.header.map((_, column) => isNumeric(table, column)),
    [table]
  );
  React.useEffect(() => {
    const element = ref.current;
    if (!element || typeof ResizeObserver === 'undefined') {
      return;
    }
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const [first, last] = windowOf(scrollTop, height, table.rows.length);
  const template = widths
    .slice(0, columns)
    .map(width => `${width}ch`)
    .join(' ');
  const cells = (row: string[], role: string) =>
    Array.from({ length: columns }, (_, column) => (
      <span
        key={column}
        role={role}
        aria-colindex={column + 1}
        className={
          right[column] ? 'dk-Table-cell dk-mod-number' : 'dk-Table-cell'
        }
        title={(row[column] ?? '').length > 40 ? row[column] : undefined}
      >
        {row[column] ?? ''}
      </span>
    ));
  return (
    <div
      ref={ref}
      className="dk-Table"
      role="table"
      aria-label={props.label}
      aria-rowcount={table.rows.length + 1}
      aria-colcount={table.header.length}
      tabIndex={0}
      onScroll={event => setScrollTop(event.currentTarget.scrollTop)}
    >
      <div className="dk-Table-head" role="rowgroup">
        <div
          role="row"
          aria-rowindex={1}
          className="dk-Table-row"
          style={{ gridTemplateColumns: template }}
        >
          {cells(table.header, 'columnheader')}
        </div>
      </div>
      <div
        role="rowgroup"
        className="dk-Table-body"
        style={{ height: table.rows.length * ROW_HEIGHT }}
      >
        {table.rows.slice(first, last).map((row, index) => (
          <div
            key={first + index}
            role="row"
            aria-rowindex={first + index + 2}
            className="dk-Table-row"
            style={{
              gridTemplateColumns: template,
              top: (first + index) * ROW_HEIGHT
            }}
          >
            {cells(row, 'cell')}
          </div>
        ))}
      </div>
    </div>
  );
}
