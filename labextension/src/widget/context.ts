/** What every part of the panel is given. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ISandboxActions, ISandboxModel } from '../tokens';

/** Draws what React does not: outputs and Markdown, by JupyterLab's renderers. */
export interface IRenderers {
  /** Draw outputs, untrusted, into an element; return how to remove them. */
  outputs(outputs: unknown[], host: HTMLElement): () => void;
  /** Draw Markdown, untrusted. */
  markdown(text: string, host: HTMLElement): () => void;
}

export interface IPanelContext {
  model: ISandboxModel;
  actions: ISandboxActions;
  renderers: IRenderers;
  trans: TranslationBundle;
}

export const PanelContext = React.createContext<IPanelContext | null>(null);

/** The context; every part is drawn within one. */
export function usePanel(): IPanelContext {
  const context = React.useContext(PanelContext);
  if (context === null) {
    throw new Error('drawn outside of the panel');
  }
  return context;
}
