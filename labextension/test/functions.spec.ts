import { attachmentsOf } from '../src/model/attachments';
import { guessDelimiter, isNumeric, parseCsv } from '../src/model/csv';
import {
  chainOf,
  collectFiles,
  lastReport,
  lostNames
} from '../src/model/files';
import {
  formatDuration,
  formatPath,
  formatSize,
  formatTime
} from '../src/model/format';
import { objectMime, prettyJson, previewKind } from '../src/model/preview';
import {
  archivePath,
  artifactPath,
  directoryPath,
  encode,
  statePath
} from '../src/model/url';
import type { IFileChange, IStep } from '../src/tokens';

function change(path: string, more: Partial<IFileChange> = {}): IFileChange {
  return {
    path,
    kind: 'new',
    size: 1,
    blob: 'b',
    mime: 'text/plain',
    skipped: null,
    ...more
  };
}

function step(seq: number, more: Partial<IStep> = {}): IStep {
  return {
    id: `s${seq}`,
    sandbox: 'one',
    seq,
    parent: seq > 1 ? `s${seq - 1}` : null,
    kind: 'cell',
    language: 'python',
    title: '',
    cell_id: null,
    to: null,
    created: '',
    finished: null,
    status: 'ok',
    reason: '',
    execution_count: null,
    usage: {},
    truncated: false,
    files: [],
    state: {},
    ...more
  };
}

describe('files', () => {
  it('walks the chain past what a rewind left behind', () => {
    const steps = [
      step(1),
      step(2),
      step(3),
      step(4, { kind: 'rewind', parent: 's1', to: 's1' }),
      step(5, { parent: 's4' })
    ];
    expect(chainOf(steps).map(one => one.seq)).toEqual([5, 4, 1]);
    expect(chainOf([])).toEqual([]);
  });

  it('goes back to the base with a rewind to it', () => {
    const steps = [
      step(1),
      step(2, { kind: 'rewind', parent: null, to: null })
    ];
    expect(chainOf(steps).map(one => one.seq)).toEqual([2]);
  });

  it('does not walk in a circle', () => {
    expect(chainOf([step(1, { parent: 's1' })]).length).toBe(1);
  });

  it('shows the newest version of each file, newest first', () => {
    const { results, attachments } = collectFiles([
      step(1, { kind: 'upload', files: [change('attachments/in.csv')] }),
      step(2, { files: [change('a'), change('b')] }),
      step(3, { files: [change('a', { kind: 'changed', size: 2 })] }),
      step(4, { files: [change('b', { kind: 'deleted', blob: null })] })
    ]);
    expect(results.map(one => [one.path, one.step, one.versions])).toEqual([
      ['a', 3, 2]
    ]);
    expect(attachments.map(one => one.path)).toEqual(['attachments/in.csv']);
  });

  it('forgets an attachment that a cell deleted', () => {
    const { attachments } = collectFiles([
      step(1, { kind: 'upload', files: [change('attachments/x')] }),
      step(2, { files: [change('attachments/x', { kind: 'deleted' })] })
    ]);
    expect(attachments).toEqual([]);
  });

  it('reads lost names and nothing else', () => {
    const report = {
      lost: [
        { name: 'f', type: 'file', reason: 'open', cell: 3 },
        { name: 'g' },
        'x',
        null
      ]
    };
    expect(lostNames(step(1, { state: report }))).toEqual([
      { name: 'f', type: 'file', reason: 'open', cell: 3, isNew: true },
      { name: 'g', type: '', reason: '', cell: null, isNew: true }
    ]);
    expect(lostNames(step(1, { state: { lost: 3 } }))).toEqual([]);
    expect(lostNames(undefined)).toEqual([]);
    const steps = [step(1, { state: report }), step(2, { kind: 'upload' })];
    expect(lastReport(steps)?.seq).toBe(1);
  });
});

describe('csv', () => {
  it.each([
    ['a,b\n1,2\n', [['1', '2']]],
    [
      'a,b\r\n1,2\r\n3,4',
      [
        ['1', '2'],
        ['3', '4']
      ]
    ],
    ['a,b\n"x, ""y""\nz",2\n', [['x, "y"\nz', '2']]],
    ['a,b\n\n1,\n', [['1', '']]],
    ['\ufeffa;b\n1;2', [['1', '2']]],
    ['a\tb\n1\t2\n', [['1', '2']]],
    ['a\n""\n', [['']].slice(0, 0)],
    ['a,b\n"open,2', [['open,2']]]
  ])('reads %j', (text, rows) => {
    expect(parseCsv(text).rows).toEqual(rows);
  });

  it('has as many columns as the longest row', () => {
    expect(parseCsv('a\n1,2,3\n').header).toEqual(['a', '', '']);
  });

  it('leaves a broken last row out when the text is cut', () => {
    const table = parseCsv('a,b\n1,2\n3,', true);
    expect(table.rows).toEqual([['1', '2']]);
    expect(table.cut).toBe(true);
  });

  it('stops at a number of rows', () => {
    const table = parseCsv('a\n1\n2\n3\n', false, 3);
    expect(table.rows).toEqual([['1'], ['2']]);
    expect(table.cut).toBe(true);
  });

  it('reads a hundred thousand rows soon', () => {
    const text = 'a,b,c\n' + '1,"two ""2""",3.5\n'.repeat(100_000);
    const begin = Date.now();
    expect(parseCsv(text).rows.length).toBe(100_000);
    expect(Date.now() - begin).toBeLessThan(2000);
  });

  it('is empty for nothing', () => {
    expect(parseCsv('')).toEqual({ header: [], rows: [], cut: false });
  });

  it('guesses delimiters outside of quotes', () => {
    expect(guessDelimiter('"a,b,c";d\n')).toBe(';');
    expect(guessDelimiter('plain')).toBe(',');
  });

  it('knows columns of numbers', () => {
    const table = parseCsv('n,t,e\n1,a,\n-2.5e3,b,\n"1,000",c,\n12 %,d,\n');
    expect([0, 1, 2].map(column => isNumeric(table, column))).toEqual([
      false,
      false,
      false
    ]);
    expect(isNumeric(parseCsv('n\n1\n-2.5e3\n3%\n'), 0)).toBe(true);
  });
});

describe('format', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [1536, '1.5 KiB'],
    [16 << 20, '16 MiB'],
    [1024 * 1024 - 1, '1.0 MiB']
  ])('size %d', (bytes, text) => expect(formatSize(bytes)).toBe(text));

  it.each([
    [0.0004, '0 ms'],
    [0.34, '340 ms'],
    [0.9999, '1.0 s'],
    [59.99, '1 min 00 s'],
    [185, '3 min 05 s'],
    [7260, '2 h 01 min'],
    [NaN, ''],
    [-1, '']
  ])('duration %d', (seconds, text) =>
    expect(formatDuration(seconds)).toBe(text)
  );

  it('shows names that lie as what they are', () => {
    expect(formatPath('a\nb')).toBe('a⏎b');
    expect(formatPath('\u202egnp.exe')).toBe('�gnp.exe');
    expect(formatPath('raw\udcff')).toBe('raw�');
    expect(formatPath('🎉 café')).toBe('🎉 café');
  });

  it('shows the time of day only today', () => {
    const now = new Date('2026-03-01T12:00:00');
    expect(formatTime('2026-03-01T09:05:00', now)).not.toContain('2026');
    expect(formatTime('2026-02-01T09:05:00', now)).toContain('2026');
    expect(formatTime('never')).toBe('');
  });
});

describe('preview', () => {
  it.each([
    ['text/csv', 'a.csv', 'table'],
    ['text/plain', 'a.csv', 'table'],
    ['text/plain', 'a.txt', 'text'],
    ['text/plain', 'a.svg', 'image'],
    ['text/html; charset=utf-8', 'a', 'html'],
    ['image/png', 'a', 'image'],
    ['application/pdf', 'a', 'pdf'],
    ['text/x-python', 'a.py', 'text'],
    ['application/octet-stream', 'a.csv', 'none'],
    ['application/octet-stream', 'a.html', 'none']
  ])('%s %s', (mime, path, kind) =>
    expect(previewKind({ mime, path, size: 1 })).toBe(kind)
  );

  it('does not load what is too large', () => {
    const huge = { mime: 'image/png', path: 'a.png', size: 1e9 };
    expect(previewKind(huge)).toBe('none');
  });

  it('never calls text an HTML object', () => {
    expect(objectMime({ mime: 'text/plain', path: 'a.svg' })).toBe(
      'image/svg+xml'
    );
    expect(objectMime({ mime: 'image/png', path: 'a.html' })).toBe('image/png');
  });

  it('sets JSON out', () => {
    expect(prettyJson('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(prettyJson('{broken')).toBe('{broken');
  });
});

describe('url', () => {
  it('sends names back as the bytes they were', () => {
    expect(encode('raw\udcff.bin')).toBe('raw%FF.bin');
    expect(encode('a b/ü?#%')).toBe('a%20b%2F%C3%BC%3F%23%25');
    expect(encode('🎉')).toBe('%F0%9F%8E%89');
    expect(encode('\ud800x')).toBe('%EF%BF%BDx');
  });

  it('makes addresses', () => {
    const file = { sandbox: 'abc', step: 3, path: 'out/a b.csv' };
    expect(artifactPath(file)).toBe('sandboxes/abc/artifacts/3/out/a%20b.csv');
    expect(statePath(file)).toBe('sandboxes/abc/files/out/a%20b.csv?step=3');
    expect(archivePath('abc', [file, { ...file, step: 4 }])).toBe(
      'sandboxes/abc/archive?file=3/out/a%20b.csv&file=4/out/a%20b.csv'
    );
  });
});

describe('attachments of cells', () => {
  const cell = (attachments: unknown, id = 'm1') => ({ id, attachments });
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

  it('are base64', () => {
    const [file] = attachmentsOf([
      cell({ 'plan.png': { 'image/png': btoa('picture') } })
    ]);
    expect(file.name).toBe('plan.png');
    expect(file.mime).toBe('image/png');
    expect(text(file.bytes)).toBe('picture');
  });

  it('may be the text of an open file', () => {
    const bundle = { 'text/csv': 'a,b\n1,ü\n' };
    expect(text(attachmentsOf([cell({ 'a.csv': bundle })])[0].bytes)).toBe(
      'a,b\n1,ü\n'
    );
    const looks = { 'text/plain': 'abcd' };
    expect(text(attachmentsOf([cell({ a: looks })])[0].bytes)).toBe('abcd');
  });

  it('are told apart by cell, name and content', () => {
    const one = { 'image.png': { 'image/png': btoa('1') } };
    const two = { 'image.png': { 'image/png': btoa('2') } };
    const keys = attachmentsOf([
      cell(one),
      cell(one),
      cell(two),
      cell(one, 'm2')
    ]).map(file => file.key);
    expect(new Set(keys).size).toBe(3);
  });

  it('may be missing or malformed', () => {
    expect(
      attachmentsOf([
        {},
        cell(null),
        cell([1]),
        cell({ a: 1, b: {}, c: { 'image/png': 7 } })
      ])
    ).toEqual([]);
  });
});

describe('a directory of a state', () => {
  it('has an address', () => {
    expect(directoryPath({ sandbox: 'one', step: 7, path: 'out/ü 1' })).toBe(
      'sandboxes/one/archive?step=7&directory=out/%C3%BC%201'
    );
    expect(directoryPath({ sandbox: 'one', step: 7, path: '' })).toBe(
      'sandboxes/one/archive?step=7&directory='
    );
  });
});
