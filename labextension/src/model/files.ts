/** What the log says about files and steps. */

import type { IFileEntry, ILostName, IStep } from '../tokens';

/** The newest step first, back to the base: only these made the present state. */
export function chainOf(steps: IStep[]): IStep[] {
  const byId = new Map(steps.map(step => [step.id, step]));
  const chain: IStep[] = [];
  const seen = new Set<string>();
  let current: IStep | undefined = steps[steps.length - 1];
  while (current && !seen.has(current.id)) {
    seen.add(current.id);
    chain.push(current);
    const next: string | null =
      current.kind === 'rewind' ? current.to : current.parent;
    current = next ? byId.get(next) : undefined;
  }
  return chain;
}

/** Results and attachments: the newest version of each file of the chain, newest first. */
export function collectFiles(steps: IStep[]): {
  results: IFileEntry[];
  attachments: IFileEntry[];
} {
  const results = new Map<string, IFileEntry>();
  const attachments = new Map<string, IFileEntry>();
  for (const step of chainOf(steps).reverse()) {
    const files = step.kind === 'upload' ? attachments : results;
    for (const change of step.files) {
      const before = files.get(change.path);
      // A cell that changes an attachment makes a result of it.
      files.delete(change.path);
      if (change.kind === 'deleted') {
        attachments.delete(change.path);
        continue;
      }
      files.set(change.path, {
        sandbox: step.sandbox,
        step: step.seq,
        stepId: step.id,
        path: change.path,
        kind: change.kind,
        size: change.size,
        mime: change.mime,
        blob: change.blob,
        skipped: change.skipped,
        cellId: step.cell_id,
        executionCount: step.execution_count,
        created: step.created,
        title: step.title,
        versions: (before?.versions ?? 0) + 1
      });
    }
  }
  return {
    results: [...results.values()].reverse(),
    attachments: [...attachments.values()].reverse()
  };
}

/** A number of a step's usage record, or undefined. */
export function usageOf(step: IStep, name: string): number | undefined {
  const value = step.usage[name];
  return typeof value === 'number' ? value : undefined;
}

/** How long a step took, in seconds; undefined while it runs. */
export function durationOf(step: IStep): number | undefined {
  return usageOf(step, 'wall_seconds');
}

/** The names that a state report says are lost. */
export function lostNames(step: IStep | undefined): ILostName[] {
  const lost = step?.state['lost'];
  if (!Array.isArray(lost)) {
    return [];
  }
  return lost
    .filter(
      (item): item is Record<string, unknown> =>
        typeof item === 'object' && item !== null && 'name' in item
    )
    .map(item => ({
      name: String(item.name),
      type: String(item.type ?? ''),
      reason: String(item.reason ?? ''),
      cell: typeof item.cell === 'number' ? item.cell : null,
      isNew: item.new !== false
    }));
}

/** The newest step of the chain that reported about variables. */
export function lastReport(steps: IStep[]): IStep | undefined {
  return chainOf(steps).find(
    step => step.kind === 'cell' && Object.keys(step.state).length > 0
  );
}
