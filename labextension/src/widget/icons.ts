/** The extension's icon, and icons by kind of file. */

import {
  fileIcon,
  html5Icon,
  imageIcon,
  jsonIcon,
  LabIcon,
  markdownIcon,
  pdfIcon,
  spreadsheetIcon,
  textEditorIcon
} from '@jupyterlab/ui-components';

import type { PreviewKind } from '../model/preview';

// JupyterLab's icon classes colour fills; this one is drawn with lines (style/base.css).
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="dk-Icon-stroke" fill="none" stroke-width="2" stroke-linejoin="round">
    <path d="M12 2.5 21 7v10l-9 4.5L3 17V7z"/><path d="M3 7l9 4.5L21 7M12 11.5v10"/>
  </g></svg>`;

/** A box: the sandbox. */
export const sandboxIcon = new LabIcon({
  name: 'dagger-kernel:sandbox',
  svgstr: SVG
});

/** The icon of a kind of file. */
export function iconOf(kind: PreviewKind): LabIcon {
  return ICONS[kind];
}

const ICONS: Record<PreviewKind, LabIcon> = {
  image: imageIcon,
  table: spreadsheetIcon,
  json: jsonIcon,
  markdown: markdownIcon,
  html: html5Icon,
  pdf: pdfIcon,
  text: textEditorIcon,
  none: fileIcon
};
