import { locale } from './texts.ts';

/** Formats dates, times, numbers and sizes in the language of the page. */

export const date = (unixSeconds: number): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long' }).format(unixSeconds * 1000);

/** Shorter, for the columns of tables. */
export const day = (unixSeconds: number): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }).format(unixSeconds * 1000);

export const dateTime = (unixSeconds: number): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short' }).format(unixSeconds * 1000);

export const timeOfDay = (unixSeconds: number): string =>
  new Intl.DateTimeFormat(locale, { timeStyle: 'short' }).format(unixSeconds * 1000);

/** “Today”, “Yesterday”, or the date. */
export function dayName(unixSeconds: number): string {
  const startOf = (moment: Date) => new Date(moment.getFullYear(), moment.getMonth(), moment.getDate()).getTime();
  // Rounded: a day can have 23 or 25 hours.
  const ago = Math.round((startOf(new Date()) - startOf(new Date(unixSeconds * 1000))) / 86_400_000);
  if (ago !== 0 && ago !== 1) return date(unixSeconds);
  const name = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(-ago, 'day');
  return name.charAt(0).toLocaleUpperCase(locale) + name.slice(1);
}

/** The time, with the date if it is not today. */
export function time(moment: Date): string {
  const isToday = moment.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale, { timeStyle: 'short', ...(!isToday && { dateStyle: 'medium' }) }).format(
    moment,
  );
}

export const decimalSign: string =
  new Intl.NumberFormat(locale).formatToParts(0.5).find(({ type }) => type === 'decimal')?.value ?? '.';

export const number = (value: number): string => new Intl.NumberFormat(locale).format(value);

export const percent = (share: number): string =>
  new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 }).format(share);

/** A size in kB or MB of 1024, as limits count. */
export function size(bytes: number): string {
  const isLarge = bytes >= 1024 ** 2;
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: isLarge ? 'megabyte' : 'kilobyte',
    maximumFractionDigits: isLarge ? 1 : 0,
  }).format(bytes / (isLarge ? 1024 ** 2 : 1024));
}
