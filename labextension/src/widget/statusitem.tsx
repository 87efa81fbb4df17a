/** The status bar's item: how far the sandbox is. */

import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ISandboxModel } from '../tokens';

/** The item. A click opens the panel. */
export class StatusItem extends ReactWidget {
  constructor(
    model: ISandboxModel,
    trans: TranslationBundle,
    onClick: () => void
  ) {
    super();
    this._model = model;
    this._trans = trans;
    this._onClick = onClick;
    this.addClass('dk-StatusItem');
    model.changed.connect(() => this.update(), this);
  }

  protected render(): JSX.Element | null {
    const { state } = this._model;
    const trans = this._trans;
    if (state.phase === 'none') {
      return null;
    }
    const text = state.offline
      ? trans.__('Sandbox: offline')
      : state.progress
        ? trans.__('Sandbox: %1', state.progress)
        : trans._n('Sandbox: %1 step', 'Sandbox: %1 steps', state.steps.length);
    return (
      <button
        type="button"
        title={trans.__('Show files, log and status of the sandbox')}
        onClick={this._onClick}
      >
        {text}
        {state.lost.length > 0 &&
          trans._n(
            ', %1 variable lost',
            ', %1 variables lost',
            state.lost.length
          )}
      </button>
    );
  }

  private readonly _model: ISandboxModel;
  private readonly _trans: TranslationBundle;
  private readonly _onClick: () => void;
}
