import {
  ApiError,
  BUSY_POLL,
  SandboxModel,
  statusOf
} from '../src/model/model';
import type {
  IPanelState,
  ISandbox,
  ISandboxApi,
  IStep,
  IUploaded
} from '../src/tokens';

function sandbox(id: string, more: Partial<ISandbox> = {}): ISandbox {
  return {
    id,
    notebook: '/n/a.ipynb',
    name: 'a.ipynb',
    created: '2026-01-01T00:00:00+00:00',
    last_activity: '2026-01-01T00:00:00+00:00',
    parent_step: null,
    steps: 1,
    state: 'open',
    ...more
  };
}

export function step(seq: number, more: Partial<IStep> = {}): IStep {
  return {
    id: `s${seq}`,
    sandbox: 'one',
    seq,
    parent: seq > 1 ? `s${seq - 1}` : null,
    kind: 'cell',
    language: 'python',
    title: `cell ${seq}`,
    cell_id: `c${seq}`,
    to: null,
    created: '2026-01-01T00:00:00+00:00',
    finished: null,
    status: 'ok',
    reason: '',
    execution_count: seq,
    usage: {},
    truncated: false,
    files: [],
    state: {},
    ...more
  };
}

/** A server with a log that tests change. */
class FakeApi implements ISandboxApi {
  all: Record<string, ISandbox[]> = { 'a.ipynb': [sandbox('one')] };
  log: Record<string, IStep[]> = { one: [step(1)] };
  calls: string[] = [];
  fail: Error | null = null;
  uploads: (IUploaded | Error)[] = [];
  gate: Promise<void> | null = null;
  page = 500;

  private async _answer<T>(call: string, value: () => T): Promise<T> {
    this.calls.push(call);
    await this.gate;
    if (this.fail) {
      throw this.fail;
    }
    return value();
  }

  sandboxes(notebook: string) {
    return this._answer(
      `sandboxes ${notebook}`,
      () => this.all[notebook] ?? []
    );
  }
  sandbox(id: string) {
    return this._answer(`sandbox ${id}`, () => sandbox(id));
  }
  cached(id: string) {
    return this._answer(`cached ${id}`, () => ({ cached: ['s1'] }));
  }
  async restore(id: string, seq: number | string) {
    await this._answer(`restore ${id} ${seq}`, () => null);
  }
  begin(notebook: string) {
    return this._answer(`begin ${notebook}`, () => {
      this.all[notebook] = [sandbox('begun')];
      this.log['begun'] = [];
      return this.all[notebook][0];
    });
  }
  steps(id: string, after: number) {
    return this._answer(`steps ${id} ${after}`, () => {
      const rest = this.log[id].filter(one => one.seq > after);
      return {
        steps: rest.slice(0, this.page),
        more: rest.length > this.page
      };
    });
  }
  inherited(id: string) {
    return this._answer(`inherited ${id}`, () => ({ steps: this.log['old'] }));
  }
  step(): never {
    throw new Error('unused');
  }
  status(): never {
    throw new ApiError('no engine', 503);
  }
  async upload(id: string, files: { name: string; size: number }[]) {
    this.calls.push(`upload ${id} ${files.map(file => file.name).join()}`);
    const answer = this.uploads.shift() ?? {
      step: null,
      paths: [],
      skipped: []
    };
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  }
  reopen(id: string) {
    return this._answer(`reopen ${id}`, () => sandbox('again'));
  }
  restart(id: string) {
    return this._answer(`restart ${id}`, () => sandbox('fresh'));
  }
  rewind(id: string, seq: number) {
    return this._answer(`rewind ${id} ${seq}`, () => step(9));
  }
  bytes(): never {
    throw new Error('unused');
  }
  text(): never {
    throw new Error('unused');
  }
  url() {
    return '';
  }
  stateUrl() {
    return '';
  }
  directoryUrl() {
    return 'directory';
  }
  archiveUrl() {
    return '';
  }
}

class FakeClock {
  timers = new Map<number, { action: () => void; at: number }>();
  last = 0;
  set(action: () => void, milliseconds: number): number {
    this.last += 1;
    this.timers.set(this.last, { action, at: milliseconds });
    return this.last;
  }
  clear(timer: number): void {
    this.timers.delete(timer);
  }
  get waits(): number[] {
    return [...this.timers.values()].map(timer => timer.at);
  }
  async fire(): Promise<void> {
    const timers = [...this.timers.values()];
    this.timers.clear();
    timers.forEach(timer => timer.action());
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) {
    await Promise.resolve();
  }
}

describe('SandboxModel', () => {
  let api: FakeApi;
  let clock: FakeClock;
  let model: SandboxModel;
  let seen: IPanelState['phase'][];

  beforeEach(() => {
    api = new FakeApi();
    clock = new FakeClock();
    model = new SandboxModel(api, clock);
    seen = [];
    model.changed.connect((_, state) => {
      if (seen[seen.length - 1] !== state.phase) {
        seen.push(state.phase);
      }
    });
  });

  it('shows nothing without a notebook', () => {
    expect(model.state.phase).toBe('none');
    expect(api.calls).toEqual([]);
  });

  it('reads the newest open sandbox of the notebook', async () => {
    api.all['a.ipynb'] = [
      sandbox('ended', { state: 'ended' }),
      sandbox('one'),
      sandbox('older')
    ];
    await model.setNotebook('a.ipynb');
    expect(seen).toEqual(['loading', 'ready']);
    expect(model.state.sandbox?.id).toBe('one');
    expect(model.state.steps.map(one => one.seq)).toEqual([1]);
  });

  it('is empty for a notebook without a sandbox', async () => {
    await model.setNotebook('new.ipynb');
    expect(seen).toEqual(['loading', 'empty']);
  });

  it('forgets everything of the notebook before', async () => {
    await model.setNotebook('a.ipynb');
    await model.setNotebook('new.ipynb');
    expect(model.state.steps).toEqual([]);
    expect(model.state.sandbox).toBeNull();
    await model.setNotebook(null);
    expect(model.state.phase).toBe('none');
  });

  it('drops answers that come late for another notebook', async () => {
    let open = () => {};
    api.gate = new Promise(resolve => (open = resolve));
    const first = model.setNotebook('a.ipynb');
    const second = model.setNotebook('new.ipynb');
    open();
    await Promise.all([first, second]);
    expect(model.state.notebook).toBe('new.ipynb');
    expect(model.state.phase).toBe('empty');
    expect(model.state.steps).toEqual([]);
  });

  it('reads only what is new, from the first step that may still change', async () => {
    api.log.one = [step(1), step(2), step(3, { status: 'pending' })];
    await model.setNotebook('a.ipynb');
    api.log.one = [step(1), step(2), step(3), step(4)];
    api.calls = [];
    await model.refresh();
    expect(api.calls).toContain('steps one 2');
    expect(model.state.steps.map(one => one.status)).toEqual(
      Array(4).fill('ok')
    );
  });

  it('reads long logs in pages', async () => {
    api.page = 2;
    api.log.one = [1, 2, 3, 4, 5].map(seq => step(seq));
    await model.setNotebook('a.ipynb');
    expect(model.state.steps.length).toBe(5);
  });

  it('joins calls during a reading into one more', async () => {
    await model.setNotebook('a.ipynb');
    api.calls = [];
    await Promise.all([model.refresh(), model.refresh(), model.refresh()]);
    expect(api.calls.filter(call => call.startsWith('sandboxes')).length).toBe(
      2
    );
  });

  it('shows a fork with the steps it continues', async () => {
    api.all['a.ipynb'] = [sandbox('one', { parent_step: 'o2' })];
    api.log.old = [
      step(1, { id: 'o1', sandbox: 'old' }),
      step(2, { id: 'o2', sandbox: 'old', parent: 'o1' })
    ];
    api.log.one = [step(1, { parent: 'o2' })];
    await model.setNotebook('a.ipynb');
    expect(model.state.steps.map(one => one.id)).toEqual(['o1', 'o2', 's1']);
    api.calls = [];
    await model.refresh();
    expect(api.calls).not.toContain('inherited one');
  });

  it('prefers the sandbox that the kernel says it uses', async () => {
    api.all['a.ipynb'] = [sandbox('one'), sandbox('two')];
    api.log.two = [step(1, { sandbox: 'two' })];
    await model.setNotebook('a.ipynb');
    model.setLive('two');
    await clock.fire();
    expect(model.state.sandbox?.id).toBe('two');
    await model.show('one');
    expect(model.state.sandbox?.id).toBe('one');
    expect(model.state.pinned).toBe(true);
    await model.show(null);
    expect(model.state.sandbox?.id).toBe('two');
    expect(model.state.pinned).toBe(false);
  });

  it('shows the sandbox of another notebook that the kernel was told to use', async () => {
    await model.setNotebook('a.ipynb');
    api.log.elsewhere = [step(1, { sandbox: 'elsewhere' })];
    model.setLive('elsewhere');
    await clock.fire();
    expect(model.state.sandbox?.id).toBe('elsewhere');
  });

  it('knows which steps are cached, for this sandbox only', async () => {
    await model.refreshCached();
    expect(model.state.cached).toBeNull();
    await model.setNotebook('a.ipynb');
    await model.refreshCached();
    expect(model.state.cached?.has('s1')).toBe(true);
    await model.refresh();
    expect(model.state.cached?.has('s1')).toBe(true);
    await model.setNotebook('new.ipynb');
    expect(model.state.cached).toBeNull();
  });

  it('reads again while a cell runs, and when it has ended', async () => {
    await model.setNotebook('a.ipynb');
    expect(clock.waits).toEqual([]);
    model.setKernel('busy');
    await clock.fire();
    expect(clock.waits).toEqual([BUSY_POLL]);
    model.setKernel('idle');
    expect(clock.waits).toEqual([0]);
    await clock.fire();
    expect(clock.waits).toEqual([]);
  });

  it('keeps what it shows when the server does not answer, and tries again', async () => {
    await model.setNotebook('a.ipynb');
    api.fail = new ApiError('gone', 0);
    await model.refresh();
    expect(model.state.phase).toBe('ready');
    expect(model.state.offline).toBe(true);
    expect(model.state.steps.length).toBe(1);
    expect(clock.waits).toEqual([2000]);
    await clock.fire();
    expect(clock.waits).toEqual([4000]);
    api.fail = null;
    await clock.fire();
    expect(model.state.offline).toBe(false);
    expect(clock.waits).toEqual([]);
  });

  it('tells an error when there is nothing to show', async () => {
    api.fail = new ApiError(
      'The log is newer.',
      503,
      'LogVersionError',
      'Update.'
    );
    await model.setNotebook('a.ipynb');
    expect(model.state.phase).toBe('error');
    expect(model.state.offline).toBe(false);
    expect(model.state.error).toBe('The log is newer. Update.');
  });

  it('uploads, tells what was left out, and reads again', async () => {
    await model.setNotebook('a.ipynb');
    api.uploads = [
      {
        step: step(2, { kind: 'upload' }),
        paths: [],
        skipped: [{ name: 'big', size: 9, why: 'too large' }]
      }
    ];
    const sending = model.upload([{ name: 'a.csv', size: 3 }]);
    expect(model.state.uploads.map(one => one.state)).toEqual(['sending']);
    await sending;
    expect(model.state.uploads).toEqual([]);
    expect(model.state.notices).toEqual(['big: too large']);
    model.dismiss('big: too large');
    expect(model.state.notices).toEqual([]);
  });

  it('begins a sandbox for the first upload', async () => {
    await model.setNotebook('new.ipynb');
    await model.upload([{ name: 'a.csv', size: 3 }]);
    expect(api.calls).toContain('begin new.ipynb');
    expect(api.calls).toContain('upload begun a.csv');
    expect(model.state.phase).toBe('ready');
  });

  it('waits with an upload until the running cell has ended', async () => {
    await model.setNotebook('a.ipynb');
    api.uploads = [new ApiError('busy', 409)];
    const sending = model.upload([{ name: 'a.csv', size: 3 }]);
    await settle();
    expect(model.state.uploads[0].state).toBe('waiting');
    await clock.fire();
    await sending;
    expect(api.calls.filter(call => call.startsWith('upload')).length).toBe(2);
    expect(model.state.uploads).toEqual([]);
  });

  it('keeps a failed upload until it is dismissed', async () => {
    await model.setNotebook('a.ipynb');
    api.uploads = [new ApiError('No space is left.', 507)];
    await model.upload([{ name: 'a.csv', size: 3 }]);
    expect(model.state.uploads[0]).toMatchObject({
      state: 'failed',
      message: 'No space is left.'
    });
    model.cancelUpload(model.state.uploads[0].id);
    expect(model.state.uploads).toEqual([]);
  });

  it('cancels an upload that waits', async () => {
    await model.setNotebook('a.ipynb');
    api.uploads = [new ApiError('busy', 409)];
    const sending = model.upload([{ name: 'a.csv', size: 3 }]);
    await settle();
    model.cancelUpload(model.state.uploads[0].id);
    await sending;
    expect(model.state.uploads).toEqual([]);
    expect(model.state.notices).toEqual([]);
  });

  it('is quiet after it was disposed', async () => {
    await model.setNotebook('a.ipynb');
    model.setKernel('busy');
    model.dispose();
    expect(clock.waits).toEqual([]);
    model.setKernel('idle');
    expect(model.state.kernel).toBe('busy');
  });

  it('tells a running step from one that a crash ended', () => {
    const pending = step(2, { status: 'pending' });
    const steps = [step(1), pending];
    expect(statusOf(pending, { kernel: 'busy', steps })).toBe('running');
    expect(statusOf(pending, { kernel: 'idle', steps })).toBe('unfinished');
    const followed = { kernel: 'busy', steps: [...steps, step(3)] };
    expect(statusOf(pending, followed)).toBe('unfinished');
    expect(statusOf(step(1), { kernel: null, steps })).toBe('ok');
  });
});
