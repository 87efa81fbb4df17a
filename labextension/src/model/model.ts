/** The panel's model: what the log says of the active notebook's sandbox. No DOM, no network. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type {
  IFileRef,
  IPanelState,
  ISandbox,
  ISandboxApi,
  ISandboxModel,
  IStep,
  IStepDetail,
  IText,
  IUpload,
  IUploadFile
} from '../tokens';
import { chainOf, collectFiles, lastReport, lostNames } from './files';

/** How often the log is read while a cell runs, in milliseconds. */
export const BUSY_POLL = 2000;

/** How long after a failure the server is asked again, in milliseconds; doubled each time. */
export const RETRY_FIRST = 2000;
export const RETRY_MOST = 30_000;

/** How long an upload waits before it is sent again because a cell runs, in milliseconds. */
export const UPLOAD_RETRY = 3000;

/** An answer of the server that is no success. */
export class ApiError extends Error {
  /**
   * @param status The HTTP status; 0: the server did not answer.
   * @param name The kind of error, as the server names it.
   * @param remedy What can be done.
   */
  constructor(
    message: string,
    readonly status: number,
    readonly kind = '',
    readonly remedy = ''
  ) {
    super(remedy ? `${message} ${remedy}` : message);
  }

  /** Whether the server did not answer. */
  get offline(): boolean {
    return this.status === 0;
  }
}

/** Timers, so that tests need not wait. */
export interface IClock {
  set(action: () => void, milliseconds: number): number;
  clear(timer: number): void;
}

const EMPTY: IPanelState = {
  phase: 'none',
  notebook: null,
  sandbox: null,
  sandboxes: [],
  steps: [],
  results: [],
  attachments: [],
  cached: null,
  lost: [],
  uploads: [],
  notices: [],
  status: null,
  offline: false,
  error: '',
  kernel: null,
  pinned: false,
  progress: ''
};

const CLOCK: IClock = {
  set: (action, milliseconds) =>
    setTimeout(action, milliseconds) as unknown as number,
  clear: timer => clearTimeout(timer)
};

/** The model. One for the application; it follows the active notebook. */
export class SandboxModel<
  F extends IUploadFile = IUploadFile
> implements ISandboxModel {
  constructor(api: ISandboxApi<F>, clock: IClock = CLOCK) {
    this._api = api;
    this._clock = clock;
  }

  get state(): IPanelState {
    return this._state;
  }

  get changed(): ISignal<this, IPanelState> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._cancelTimer();
    this._aborts.forEach(abort => abort.abort());
    Signal.clearData(this);
  }

  /**
   * Follow another notebook.
   *
   * @param notebook Its path in JupyterLab; null: none that runs in a sandbox.
   */
  async setNotebook(notebook: string | null): Promise<void> {
    if (notebook === this._state.notebook) {
      return;
    }
    this._generation += 1;
    this._wanted = null;
    this._live = null;
    this._inherited = null;
    const { status, uploads } = this._state;
    this._state = { ...EMPTY, status, uploads };
    this._set({ notebook, phase: notebook === null ? 'none' : 'loading' });
    this._cancelTimer();
    if (notebook !== null) {
      await this.refresh();
    }
  }

  /** Note what the kernel does: `idle`, `busy`; null: there is none. */
  setKernel(status: string | null): void {
    if (status === this._state.kernel) {
      return;
    }
    const ended = this._state.kernel === 'busy' && status !== 'busy';
    this._set({
      kernel: status,
      progress: status === 'busy' ? this._state.progress : ''
    });
    if (this._state.notebook !== null && (ended || status === 'busy')) {
      this._schedule(ended ? 0 : BUSY_POLL / 4);
    }
  }

  /** Note the sandbox that the running kernel says it uses. */
  setLive(sandbox: string | null): void {
    if (sandbox !== this._live) {
      this._live = sandbox;
      if (sandbox !== null) {
        this._schedule(0);
      }
    }
  }

  /** Note what long work has come to; empty: it is over. */
  setProgress(progress: string): void {
    this._set({ progress });
  }

  /** Read the log again. Calls during a reading are one more reading. */
  async refresh(): Promise<void> {
    if (this._reading) {
      this._again = true;
      return this._reading;
    }
    this._reading = this._readUntilCurrent();
    try {
      await this._reading;
    } finally {
      this._reading = null;
    }
  }

  async show(sandbox: string | null): Promise<void> {
    this._wanted = sandbox;
    this._generation += 1;
    await this.refresh();
  }

  async detail(step: IStep): Promise<IStepDetail> {
    return this._api.step(step.sandbox, step.seq);
  }

  /** Read engine and limits; they are asked for only when they are shown. */
  async refreshStatus(): Promise<void> {
    try {
      this._set({ status: await this._api.status() });
    } catch (error) {
      this._failed(error);
    }
  }

  async refreshCached(): Promise<void> {
    const id = this._state.sandbox?.id;
    if (id === undefined) {
      return;
    }
    try {
      const { cached } = await this._api.cached(id);
      if (id === this._state.sandbox?.id) {
        this._set({ cached: new Set(cached) });
      }
    } catch {
      // A mark in the log is missing; what is wrong is told by the next reading.
    }
  }

  async restore(file: IFileRef): Promise<void> {
    await this._api.restore(file.sandbox, file.step);
    await this.refreshCached();
  }

  async upload(files: F[]): Promise<void> {
    const notebook = this._state.notebook;
    if (files.length === 0 || notebook === null) {
      return;
    }
    const id = (this._lastUpload += 1);
    const abort = new AbortController();
    this._aborts.set(id, abort);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    this._set({
      uploads: [
        ...this._state.uploads,
        {
          id,
          names: files.map(file => file.name),
          sent: 0,
          total,
          state: 'sending',
          message: ''
        }
      ]
    });
    const generation = this._generation;
    try {
      const sandbox = this._state.sandbox ?? (await this._api.begin(notebook));
      const done = await this._send(sandbox.id, files, id, abort.signal);
      this._dropUpload(id);
      if (generation === this._generation) {
        this._notice(done.skipped.map(item => `${item.name}: ${item.why}`));
      }
    } catch (error) {
      if (abort.signal.aborted) {
        this._dropUpload(id);
        return;
      }
      this._changeUpload(id, { state: 'failed', message: textOf(error) });
    } finally {
      this._aborts.delete(id);
    }
    await this.refresh();
  }

  cancelUpload(id: number): void {
    const abort = this._aborts.get(id);
    if (abort) {
      abort.abort();
    } else {
      this._dropUpload(id);
    }
  }

  dismiss(notice: string): void {
    this._set({ notices: this._state.notices.filter(one => one !== notice) });
  }

  notify(notice: string): void {
    this._notice([notice]);
  }

  async reopen(sandbox: string): Promise<void> {
    await this._api.reopen(sandbox);
    this._forgetChoice();
    await this.refresh();
  }

  async restart(): Promise<void> {
    if (this._state.sandbox) {
      await this._api.restart(this._state.sandbox.id);
      this._forgetChoice();
      await this.refresh();
    }
  }

  async rewind(seq: number): Promise<void> {
    if (this._state.sandbox) {
      await this._api.rewind(this._state.sandbox.id, seq);
      await this.refresh();
    }
  }

  bytes(file: IFileRef): Promise<Blob> {
    return this._api.bytes(file);
  }

  text(file: IFileRef, maxBytes: number): Promise<IText> {
    return this._api.text(file, maxBytes);
  }

  url(file: IFileRef): string {
    return this._api.url(file);
  }

  stateUrl(file: IFileRef): string {
    return this._api.stateUrl(file);
  }

  directoryUrl(directory: IFileRef): string {
    return this._api.directoryUrl(directory);
  }

  archiveUrl(files: IFileRef[]): string {
    return this._api.archiveUrl(this._state.sandbox?.id ?? '', files);
  }

  private async _readUntilCurrent(): Promise<void> {
    do {
      this._again = false;
      const generation = this._generation;
      try {
        await this._read(generation);
        this._failures = 0;
      } catch (error) {
        if (generation === this._generation) {
          this._failed(error);
        }
      }
      if (generation !== this._generation) {
        this._again = true;
      }
    } while (this._again && !this._disposed && this._state.notebook !== null);
    this._plan();
  }

  private async _read(generation: number): Promise<void> {
    const notebook = this._state.notebook;
    if (notebook === null) {
      return;
    }
    const sandboxes = await this._api.sandboxes(notebook);
    const live = this._live;
    if (live !== null && !sandboxes.some(one => one.id === live)) {
      // The kernel was told to use another notebook's sandbox.
      await this._api.sandbox(live).then(
        one => sandboxes.unshift(one),
        () => undefined
      );
    }
    const sandbox = this._choose(sandboxes);
    if (generation !== this._generation) {
      return;
    }
    const pinned = this._wanted !== null && sandbox?.id === this._wanted;
    if (sandbox === null) {
      this._inherited = null;
      this._set({
        ...cleared(),
        phase: 'empty',
        sandboxes,
        sandbox: null,
        pinned: false
      });
      return;
    }
    const same = sandbox.id === this._state.sandbox?.id;
    const inherited = await this._readInherited(sandbox);
    const own = await this._readSteps(sandbox.id, same);
    if (generation !== this._generation) {
      return;
    }
    const steps = [...inherited, ...own];
    this._set({
      phase: 'ready',
      sandbox,
      sandboxes,
      pinned,
      steps,
      cached: same ? this._state.cached : null,
      ...collectFiles(steps),
      lost: lostNames(lastReport(steps)),
      offline: false,
      error: ''
    });
  }

  /** The chosen one, else the kernel's, else the one that the next kernel will continue. */
  private _choose(sandboxes: ISandbox[]): ISandbox | null {
    const named = (id: string | null) =>
      sandboxes.find(sandbox => sandbox.id === id);
    return (
      named(this._wanted) ??
      named(this._live) ??
      sandboxes.find(sandbox => sandbox.state === 'open') ??
      sandboxes[0] ??
      null
    );
  }

  private async _readInherited(sandbox: ISandbox): Promise<IStep[]> {
    if (sandbox.parent_step === null) {
      return [];
    }
    if (this._inherited?.sandbox !== sandbox.id) {
      const { steps } = await this._api.inherited(sandbox.id);
      this._inherited = { sandbox: sandbox.id, steps };
    }
    return this._inherited.steps;
  }

  /** Read the steps from the first one that may still change. */
  private async _readSteps(sandbox: string, same: boolean): Promise<IStep[]> {
    const known = same
      ? this._state.steps.filter(step => step.sandbox === sandbox)
      : [];
    const open = known.findIndex(step => step.status === 'pending');
    const steps = open < 0 ? known : known.slice(0, open);
    for (;;) {
      const after = steps.length > 0 ? steps[steps.length - 1].seq : 0;
      const page = await this._api.steps(sandbox, after);
      steps.push(...page.steps);
      if (!page.more || page.steps.length === 0) {
        return steps;
      }
    }
  }

  /** Send files; while a cell runs the sandbox takes none, so try again. */
  private async _send(
    sandbox: string,
    files: F[],
    id: number,
    signal: AbortSignal
  ) {
    for (;;) {
      try {
        return await this._api.upload(
          sandbox,
          files,
          (sent, total) => this._changeUpload(id, { sent, total }),
          signal
        );
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 409)) {
          throw error;
        }
        this._changeUpload(id, { state: 'waiting', sent: 0 });
        await this._sleep(UPLOAD_RETRY, signal);
        this._changeUpload(id, { state: 'sending' });
      }
    }
  }

  private _sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this._clock.set(resolve, milliseconds);
      signal.addEventListener('abort', () => {
        this._clock.clear(timer);
        reject(new Error('cancelled'));
      });
    });
  }

  private _failed(error: unknown): void {
    this._failures += 1;
    const offline = error instanceof ApiError && error.offline;
    if (this._state.phase === 'ready' || this._state.phase === 'empty') {
      // What is shown stays; only the line above it says that it is older.
      this._set({ offline, error: textOf(error) });
    } else {
      this._set({ phase: 'error', offline, error: textOf(error) });
    }
  }

  /** Decide when to read again by itself. */
  private _plan(): void {
    if (this._disposed || this._state.notebook === null) {
      return;
    }
    if (this._failures > 0) {
      this._schedule(
        Math.min(RETRY_FIRST * 2 ** (this._failures - 1), RETRY_MOST)
      );
    } else if (this._state.kernel === 'busy') {
      this._schedule(BUSY_POLL);
    }
  }

  private _schedule(milliseconds: number): void {
    this._cancelTimer();
    this._timer = this._clock.set(() => {
      this._timer = null;
      void this.refresh();
    }, milliseconds);
  }

  private _cancelTimer(): void {
    if (this._timer !== null) {
      this._clock.clear(this._timer);
      this._timer = null;
    }
  }

  private _forgetChoice(): void {
    this._wanted = null;
    this._live = null;
    this._generation += 1;
  }

  private _notice(notices: string[]): void {
    const fresh = notices.filter(one => !this._state.notices.includes(one));
    if (fresh.length > 0) {
      this._set({ notices: [...this._state.notices, ...fresh] });
    }
  }

  private _changeUpload(id: number, change: Partial<IUpload>): void {
    this._set({
      uploads: this._state.uploads.map(upload =>
        upload.id === id ? { ...upload, ...change } : upload
      )
    });
  }

  private _dropUpload(id: number): void {
    this._set({
      uploads: this._state.uploads.filter(upload => upload.id !== id)
    });
  }

  private _set(change: Partial<IPanelState>): void {
    if (this._disposed) {
      return;
    }
    this._state = { ...this._state, ...change };
    this._changed.emit(this._state);
  }

  private readonly _api: ISandboxApi<F>;
  private readonly _clock: IClock;
  private readonly _changed = new Signal<this, IPanelState>(this);
  private readonly _aborts = new Map<number, AbortController>();
  private _state: IPanelState = EMPTY;
  private _disposed = false;
  private _generation = 0;
  private _reading: Promise<void> | null = null;
  private _again = false;
  private _failures = 0;
  private _timer: number | null = null;
  private _wanted: string | null = null;
  private _live: string | null = null;
  private _inherited: { sandbox: string; steps: IStep[] } | null = null;
  private _lastUpload = 0;
}

/** The status of a step as it is now: without a result it runs, or a crash ended it. */
export function statusOf(
  step: IStep,
  state: Pick<IPanelState, 'kernel' | 'steps'>
): 'running' | 'unfinished' | Exclude<IStep['status'], 'pending'> {
  if (step.status !== 'pending') {
    return step.status;
  }
  const last = state.steps[state.steps.length - 1];
  return state.kernel === 'busy' && step.id === last?.id
    ? 'running'
    : 'unfinished';
}

/** The steps that made the present state, by id. */
export function currentIds(steps: IStep[]): Set<string> {
  return new Set(chainOf(steps).map(step => step.id));
}

function cleared(): Partial<IPanelState> {
  const { steps, results, attachments, cached, lost } = EMPTY;
  return {
    steps,
    results,
    attachments,
    cached,
    lost,
    offline: false,
    error: ''
  };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
