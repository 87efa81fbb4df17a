/** Numbers as people read them. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A size, such as `1.4 MiB`. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && value < 10 ? 1 : 0;
  // 1023.7 KiB must not be shown as 1024 KiB.
  if (Number(value.toFixed(digits)) >= 1024 && unit < UNITS.length - 1) {
    return `1.0 ${UNITS[unit + 1]}`;
  }
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** A duration, such as `340 ms`, `2.1 s` or `3 min 05 s`. */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) {
    return '';
  }
  if (seconds < 0.9995) {
    return `${Math.round(seconds * 1000)} ms`;
  }
  if (seconds < 59.95) {
    return `${seconds.toFixed(1)} s`;
  }
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) {
    return `${minutes} min ${String(whole % 60).padStart(2, '0')} s`;
  }
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** A time of day today, else date and time. */
export function formatTime(iso: string, now: Date = new Date()): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) {
    return '';
  }
  const clock: Intl.DateTimeFormatOptions = {
    hour: '2-digit',
    minute: '2-digit'
  };
  return time.toDateString() === now.toDateString()
    ? time.toLocaleTimeString(undefined, clock)
    : time.toLocaleDateString(undefined, {
        ...clock,
        year: 'numeric',
        month: 'short',
        day: 'numeric'
      });
}

/** A path as it can be shown: what is no UTF-8 or moves the cursor is replaced. */
export function formatPath(path: string): string {
  return path
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, character =>
      character === '\n' ? '⏎' : '␣'
    )
    .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '�')
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])/g, '�')
    .replace(/(?<![\ud800-\udbff])[\udc00-\udfff]/g, '�');
}
