/** Small parts that several views use. */

import type { LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

/** A button with an icon; its label is read out and shown as a tooltip. */
export function IconButton(props: {
  icon: LabIcon;
  label: string;
  onClick: () => void;
  disabled?: boolean;
}): JSX.Element {
  return (
    <button
      type="button"
      className="dk-IconButton"
      title={props.label}
      aria-label={props.label}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <props.icon.react tag="span" aria-hidden="true" />
    </button>
  );
}

/** A button with words. */
export function TextButton(props: {
  children: React.ReactNode;
  onClick: () => void;
  disabled?: boolean;
  title?: string;
  primary?: boolean;
}): JSX.Element {
  return (
    <button
      type="button"
      className={'dk-Button' + (props.primary ? ' dk-mod-primary' : '')}
      disabled={props.disabled}
      title={props.title}
      onClick={props.onClick}
    >
      {props.children}
    </button>
  );
}

/** A link that downloads, drawn as an icon. */
export function DownloadLink(props: {
  icon: LabIcon;
  label: string;
  href: string;
}): JSX.Element {
  return (
    <a
      className="dk-IconButton"
      href={props.href}
      download=""
      title={props.label}
      aria-label={props.label}
    >
      <props.icon.react tag="span" aria-hidden="true" />
    </a>
  );
}

/** What stands where there is nothing to show. */
export function Placeholder(props: {
  title: string;
  children?: React.ReactNode;
  busy?: boolean;
}): JSX.Element {
  return (
    <div className="dk-Placeholder" role={props.busy ? 'status' : undefined}>
      {props.busy && <span className="dk-Spinner" aria-hidden="true" />}
      <p className="dk-Placeholder-title">{props.title}</p>
      {props.children}
    </div>
  );
}

/** A line about something that went wrong or is worth knowing. */
export function Notice(props: {
  kind: 'error' | 'warning' | 'info';
  children: React.ReactNode;
  action?: React.ReactNode;
}): JSX.Element {
  return (
    <div
      className={`dk-Notice dk-mod-${props.kind}`}
      role={props.kind === 'error' ? 'alert' : 'status'}
    >
      <span className="dk-Notice-text">{props.children}</span>
      {props.action}
    </div>
  );
}

/** Load something when its key changes; what comes late for an older key is dropped. */
export function useLoaded<T>(
  key: string,
  load: () => Promise<T>
): { value?: T; error?: string } {
  const [state, setState] = React.useState<{
    key: string;
    value?: T;
    error?: string;
  }>({ key: '' });
  React.useEffect(() => {
    let current = true;
    load().then(
      value => current && setState({ key, value }),
      error =>
        current && setState({ key, error: String(error.message ?? error) })
    );
    return () => {
      current = false;
    };
  }, [key]);
  return state.key === key ? state : {};
}

/** An element that somebody else draws into. */
export function Host(props: {
  draw: (host: HTMLElement) => () => void;
  drawKey: string;
  className?: string;
}): JSX.Element {
  const ref = React.useRef<HTMLDivElement>(null);
  // A layout effect is undone while the element is still in the document. Lumino needs that: it
  // refuses to detach a widget that React has removed already.
  React.useLayoutEffect(
    () => (ref.current ? props.draw(ref.current) : undefined),
    [props.drawKey]
  );
  return <div ref={ref} className={props.className} />;
}

/** Keeps what is around it alive when something inside fails. */
export class Boundary extends React.Component<
  {
    /** A new key is a new try. */
    boundaryKey: string;
    title: string;
    children: React.ReactNode;
  },
  { error: Error | null; key: string }
> {
  static getDerivedStateFromProps(
    props: { boundaryKey: string },
    state: { key: string }
  ): { error: null; key: string } | null {
    return props.boundaryKey === state.key
      ? null
      : { error: null, key: props.boundaryKey };
  }

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  state = { error: null as Error | null, key: this.props.boundaryKey };

  render(): React.ReactNode {
    const { error } = this.state;
    return error === null ? (
      this.props.children
    ) : (
      <Placeholder title={this.props.title}>
        <p role="alert">{error.message}</p>
      </Placeholder>
    );
  }
}
