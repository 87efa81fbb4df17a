/** A file of a sandbox in a tab of its own. */

import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { formatPath } from '../model/format';
import { previewKind } from '../model/preview';
import type { IFileEntry } from '../tokens';
import { type IPanelContext, PanelContext } from './context';
import { iconOf } from './icons';
import { Boundary } from './parts';
import { Preview } from './preview';

/** The widget. */
export class PreviewWidget extends ReactWidget {
  constructor(context: IPanelContext, file: IFileEntry) {
    super();
    this._context = context;
    this._file = file;
    this.addClass('dk-PreviewTab');
    this.title.icon = iconOf(previewKind(file));
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', formatPath(file.path));
  }

  protected render(): JSX.Element {
    return (
      <PanelContext.Provider value={this._context}>
        <Boundary
          boundaryKey={this._file.stepId}
          title={this._context.trans.__('This cannot be drawn')}
        >
          <Preview file={this._file} />
        </Boundary>
      </PanelContext.Provider>
    );
  }

  private readonly _context: IPanelContext;
  private readonly _file: IFileEntry;
}
