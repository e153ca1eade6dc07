import { locale } from './texts.ts';

/** Formats dates, times, numbers and sizes in the language of the page. */

export const date = (unixSeconds: number): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long' }).format(unixSeconds * 1000);

export const dateTime = (unixSeconds: number): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short' }).format(unixSeconds * 1000);

/** The time, with the date if it is not today. */
export function time(moment: Date): string {
  const isToday = moment.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale, { timeStyle: 'short', ...(!isToday && { dateStyle: 'medium' }) }).format(
    moment,
  );
}

export const number = (value: number): string => new Intl.NumberFormat(locale).format(value);

export const percent = (share: number): string =>
  new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 }).format(share);

/** A size in kilobytes or megabytes of 1024, like the limits. */
export function size(bytes: number): string {
  const isLarge = bytes >= 1024 ** 2;
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: isLarge ? 'megabyte' : 'kilobyte',
    maximumFractionDigits: isLarge ? 1 : 0,
  }).format(bytes / (isLarge ? 1024 ** 2 : 1024));
}
