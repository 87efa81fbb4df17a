/** Draws outputs and Markdown with JupyterLab's renderers, never trusted. */

import { OutputArea, OutputAreaModel } from '@jupyterlab/outputarea';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IOutput } from '@jupyterlab/nbformat';
import { Widget } from '@lumino/widgets';

import type { IRenderers } from './widget/context';

/** Return the renderers of the panel. */
export function makeRenderers(rendermime: IRenderMimeRegistry): IRenderers {
  return {
    outputs: (outputs, host) => {
      const model = new OutputAreaModel({
        values: outputs as IOutput[],
        trusted: false
      });
      const area = new OutputArea({ model, rendermime });
      Widget.attach(area, host);
      return () => {
        area.dispose();
        model.dispose();
      };
    },
    markdown: (text, host) => {
      const renderer = rendermime.createRenderer('text/markdown');
      const model = rendermime.createModel({
        data: { 'text/markdown': text },
        trusted: false
      });
      Widget.attach(renderer, host);
      void renderer.renderModel(model);
      return () => renderer.dispose();
    }
  };
}
