import type { CounterName, counters, GaugeName, HistogramName, histograms, Labels } from './catalogue.ts';

/** Values at the time of a scrape, in the unit that the name ends with. What is left out is not known now. */
export type Gauges = Partial<Record<GaugeName, number>>;
export type ReadGauges = () => Gauges | Promise<Gauges>;

export interface Recorder {
  count(name: CounterName, labels: Record<string, string>, by: number): void;
  observe(name: HistogramName, labels: Record<string, string>, seconds: number): void;
  gauges(read: ReadGauges): void;
}

let recorder: Recorder | undefined;

/** From now on everything is recorded there. To be called before the parts are opened, which tell their gauges once. */
export const recordWith = (to: Recorder): void => {
  recorder = to;
};

export const isRecording = (): boolean => recorder !== undefined;

/** `by` 0 makes a series known before anything is counted: what compares it with another finds it. */
export function count<Name extends CounterName>(name: Name, labels: Labels<(typeof counters)[Name]>, by = 1): void {
  recorder?.count(name, labels, by);
}

export function observe<Name extends HistogramName>(
  name: Name,
  labels: Labels<(typeof histograms)[Name]>,
  seconds: number,
): void {
  recorder?.observe(name, labels, seconds);
}

/** `read` is called at a scrape, at most once in two seconds. It may reject: its gauges are then missing. */
export function gauges(read: ReadGauges): void {
  recorder?.gauges(read);
}
