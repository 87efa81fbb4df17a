/** Gets something that only a state has: the engine has it while it holds the state. */

import * as React from 'react';

import type { IFileRef } from '../tokens';
import { usePanel } from './context';
import { Notice, TextButton, useLoaded } from './parts';

const TRIES = 5;
const WAIT_MS = 400;

/** A download link; where the state has to be made again first, a button that does it. */
export function FromState(props: {
  /** A file of the state. */
  of: IFileRef;
  stepId: string;
  href: string;
  /** What the link says. */
  ready: string;
  /** What the button says. */
  ask: string;
}): JSX.Element {
  const { model, trans } = usePanel();
  const held = useLoaded(props.stepId, async () => {
    const { steps } = model.state;
    // The last step's state is made while the user reads.
    const isLast = steps[steps.length - 1]?.id === props.stepId;
    for (let tries = isLast ? TRIES : 1; ; tries -= 1) {
      await model.refreshCached();
      const has = model.state.cached?.has(props.stepId) ?? false;
      if (has || tries <= 1) {
        return has;
      }
      await new Promise(resolve => setTimeout(resolve, WAIT_MS));
    }
  });
  const [restoring, setRestoring] = React.useState<'' | 'busy' | 'done'>('');
  const [problem, setProblem] = React.useState('');
  const restore = () => {
    setRestoring('busy');
    setProblem('');
    model.restore(props.of).then(
      () => setRestoring('done'),
      error => {
        setRestoring('');
        setProblem(String(error.message));
      }
    );
  };
  if (held.value || restoring === 'done') {
    return (
      <a className="dk-Button" download="" href={props.href}>
        {props.ready}
      </a>
    );
  }
  return (
    <>
      {problem && <Notice kind="error">{problem}</Notice>}
      <TextButton
        disabled={held.value === undefined || restoring === 'busy'}
        title={trans.__('Repeats the steps that made it, if needed')}
        onClick={restore}
      >
        {restoring === 'busy' ? trans.__('Repeating steps…') : props.ask}
      </TextButton>
    </>
  );
}
