/**
 * What the parts of the extension say to each other: the server's JSON, the network, the model.
 */

import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

/** A sandbox: one user and one notebook. */
export interface ISandbox {
  id: string;
  /** The notebook's path on disk. */
  notebook: string;
  /** The last part of that path. */
  name: string;
  created: string;
  last_activity: string;
  parent_step: string | null;
  /** Number of steps. */
  steps: number;
  /** `open`, or `ended` by the user's restart, or `purged`. */
  state: string;
}

/** What a step did to one file. */
export interface IFileChange {
  /** Relative to /home/sandbox. */
  path: string;
  /** `output`: the whole text of an output that was cut. */
  kind: 'new' | 'changed' | 'deleted' | 'output';
  /** In bytes. */
  size: number;
  blob: string | null;
  mime: string;
  /** Why the bytes were not kept. */
  skipped: string | null;
}

export type StepKind = 'cell' | 'upload' | 'mount' | 'rewind';
export type StepStatus =
  'ok' | 'error' | 'interrupted' | 'limit' | 'lost' | 'pending';

/** A variable that could not be kept, as the state report names it. */
export interface ILostName {
  name: string;
  type: string;
  reason: string;
  /** Number of the cell to run again, or null. */
  cell: number | null;
  /** Whether this step lost it; else an earlier one did. */
  isNew: boolean;
}

/** One logged event. */
export interface IStep {
  id: string;
  sandbox: string;
  /** Position in the sandbox's log, from 1. */
  seq: number;
  parent: string | null;
  kind: StepKind;
  language: string;
  title: string;
  cell_id: string | null;
  /** Of a rewind: the step it goes back to. */
  to: string | null;
  created: string;
  finished: string | null;
  status: StepStatus;
  reason: string;
  execution_count: number | null;
  usage: Record<string, unknown>;
  truncated: boolean;
  files: IFileChange[];
  state: Record<string, unknown>;
}

/** A step with everything that was said and shown. */
export interface IStepDetail extends IStep {
  source: string;
  outputs: unknown[];
  exit_code: number | null;
  limits: Record<string, number>;
  engine: string;
  base: string;
  key: string;
}

/** The engine, the limits in force, the version. */
export interface IStatus {
  version: string;
  enabled: boolean;
  owner: string;
  engine: { name: string; available: boolean; [name: string]: unknown };
  limits: Record<string, number>;
  packages: string[];
  network: string;
}

/** What the server says about an upload. */
export interface IUploaded {
  /** Null: all of it was there already. */
  step: IStep | null;
  paths: string[];
  skipped: { name: string; size: number | null; why: string }[];
}

/** JupyterLab's type of a drag from its file browser. */
export const CONTENTS_MIME = 'application/x-jupyter-icontents';

/** A file to upload; a browser's `File` is one. */
export interface IUploadFile {
  readonly name: string;
  readonly size: number;
}

/** The network, as the model needs it. */
export interface ISandboxApi<F extends IUploadFile = IUploadFile> {
  sandboxes(notebook: string): Promise<ISandbox[]>;
  sandbox(id: string): Promise<ISandbox>;
  begin(notebook: string): Promise<ISandbox>;
  steps(
    sandbox: string,
    after: number
  ): Promise<{ steps: IStep[]; more: boolean }>;
  /** The steps of other sandboxes that a fork continues. */
  inherited(sandbox: string): Promise<{ steps: IStep[] }>;
  /** The ids of the steps whose states the engine holds now. */
  cached(sandbox: string): Promise<{ cached: string[] }>;
  /** Make the state after a step exist, by replay where the engine does not hold it. */
  restore(sandbox: string, step: number | string): Promise<void>;
  step(sandbox: string, seq: number): Promise<IStepDetail>;
  status(): Promise<IStatus>;
  upload(
    sandbox: string,
    files: F[],
    progress: (sent: number, total: number) => void,
    signal: AbortSignal
  ): Promise<IUploaded>;
  reopen(sandbox: string): Promise<ISandbox>;
  restart(sandbox: string): Promise<ISandbox>;
  rewind(sandbox: string, seq: number): Promise<IStep>;
  /** The bytes of a step's file. */
  bytes(file: IFileRef): Promise<Blob>;
  /** The first bytes of a step's file, as text. */
  text(file: IFileRef, maxBytes: number): Promise<IText>;
  /** The address of the bytes, for links. */
  url(file: IFileRef): string;
  /** The address of the file in the state after the step, which the engine must hold. */
  stateUrl(file: IFileRef): string;
  /** The address of an archive of several files. */
  directoryUrl(directory: IFileRef): string;
  archiveUrl(sandbox: string, files: IFileRef[]): string;
}

/** Text that may be only the beginning of a file. */
export interface IText {
  text: string;
  /** Whether the file goes on. */
  cut: boolean;
}

/** Names one version of a file. */
export interface IFileRef {
  sandbox: string;
  /** The step's sequence number, or its id. */
  step: number | string;
  path: string;
}

/** A file in the panel: its newest version and where that came from. */
export interface IFileEntry extends IFileRef {
  step: number;
  stepId: string;
  kind: 'new' | 'changed' | 'output';
  size: number;
  mime: string;
  blob: string | null;
  skipped: string | null;
  /** The notebook cell that made it, if one did. */
  cellId: string | null;
  executionCount: number | null;
  created: string;
  title: string;
  /** How many versions the log has. */
  versions: number;
}

/** A running or failed upload. */
export interface IUpload {
  id: number;
  names: string[];
  sent: number;
  total: number;
  /** `waiting`: a cell runs; the files go in when it has ended. */
  state: 'sending' | 'waiting' | 'failed';
  message: string;
}

/**
 * `none`: no notebook with a sandbox kernel is active. `empty`: there is one, without a sandbox yet.
 */
export type Phase = 'none' | 'loading' | 'empty' | 'ready' | 'error';

/** All that the panel shows. Replaced as a whole, never changed. */
export interface IPanelState {
  phase: Phase;
  /** JupyterLab's path of the notebook. */
  notebook: string | null;
  sandbox: ISandbox | null;
  /** The notebook's sandboxes, newest first. */
  sandboxes: ISandbox[];
  steps: IStep[];
  results: IFileEntry[];
  attachments: IFileEntry[];
  /** Ids of the steps whose states the engine holds; null: not asked yet. */
  cached: ReadonlySet<string> | null;
  /** Names that the newest step says are lost. */
  lost: ILostName[];
  uploads: IUpload[];
  /** Files that were too large, and other things to tell once. */
  notices: string[];
  status: IStatus | null;
  /** Whether the server did not answer the last time; what is shown is older. */
  offline: boolean;
  /** Why the phase is `error`. */
  error: string;
  /** What the kernel is doing now: `idle`, `busy` ...; null: no kernel runs. */
  kernel: string | null;
  /** Whether the shown sandbox was chosen by the user instead of being the newest. */
  pinned: boolean;
  /** What long work has come to ("replaying 12/40"). */
  progress: string;
}

/** The panel's model, as widgets and other extensions use it. */
export interface ISandboxModel {
  readonly state: IPanelState;
  readonly changed: ISignal<ISandboxModel, IPanelState>;
  refresh(): Promise<void>;
  /** Read engine and limits again. */
  refreshStatus(): Promise<void>;
  /** Ask the engine which states it holds. */
  refreshCached(): Promise<void>;
  /** Make the engine hold the state that a file belongs to. */
  restore(file: IFileRef): Promise<void>;
  /** Show another sandbox of the notebook; null: the newest. */
  show(sandbox: string | null): Promise<void>;
  detail(step: IStep): Promise<IStepDetail>;
  upload(files: IUploadFile[]): Promise<void>;
  cancelUpload(id: number): void;
  /** Tell something until it is dismissed. */
  notify(notice: string): void;
  dismiss(notice: string): void;
  /** Make the notebook's next start continue an older sandbox. */
  reopen(sandbox: string): Promise<void>;
  /** Make the notebook's next start begin a new sandbox. */
  restart(): Promise<void>;
  /** Let the next cell continue from an earlier step. */
  rewind(seq: number): Promise<void>;
  bytes(file: IFileRef): Promise<Blob>;
  text(file: IFileRef, maxBytes: number): Promise<IText>;
  url(file: IFileRef): string;
  stateUrl(file: IFileRef): string;
  /** The address of a ZIP archive of a directory; its path empty: everything. */
  directoryUrl(directory: IFileRef): string;
  archiveUrl(files: IFileRef[]): string;
}

/** The panel, for other extensions. */
export interface ISandboxPanel {
  readonly model: ISandboxModel;
  /** Bring the panel to front with a preview of a file. */
  open(file: IFileRef): void;
}

/** The token of {@link ISandboxPanel}. */
export const ISandboxPanel = new Token<ISandboxPanel>(
  'dagger-kernel-lab:ISandboxPanel',
  'The panel of files, log and status of dagger_kernel sandboxes.'
);

/** What the panel asks the application to do. */
export interface ISandboxActions {
  goToCell(cellId: string): void;
  insertCell(source: string): void;
  copy(text: string): void;
  openInTab(file: IFileEntry): void;
  /** Put files of JupyterLab's file browser into the sandbox. */
  uploadContents(paths: string[]): void;
  /** Save a copy beside the notebook and open it with JupyterLab's own viewer. */
  saveCopy(file: IFileEntry): void;
  restartAsNew(): void;
  reopen(sandbox: ISandbox): void;
  rewind(step: IStep): void;
}

/** The media type of the bundle that the kernel shows after a cell that made files. */
export const FILES_MIME = 'application/vnd.dagger-kernel.files+json';

/** Sent by a rendered bundle through the DOM when a file's name is clicked. */
export const OPEN_FILE_EVENT = 'dagger-kernel:open-file';

/** The name of our texts in language packs. */
export const DOMAIN = 'dagger_kernel_lab';
