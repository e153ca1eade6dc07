import type {
  CounterName,
  counters,
  GaugeName,
  HistogramName,
  histograms,
  LabelledGaugeName,
  Labels,
} from './catalogue.ts';

/** Values at the time of a scrape, in the unit in which the name ends. Missing gauges are currently unknown. */
export type Gauges = Partial<Record<Exclude<GaugeName, LabelledGaugeName>, number>> &
  Partial<Record<LabelledGaugeName, LabelledValue[]>>;

/** Rows are counted up to this number: a count of millions would not meet the deadline of the database. */
export const MAX_COUNTED = 100_000;

export interface LabelledValue {
  labels: Record<string, string>;
  value: number;
}

export type ReadGauges = () => Gauges | Promise<Gauges>;

export interface Recorder {
  count(name: CounterName, labels: Record<string, string>, by: number): void;
  observe(name: HistogramName, labels: Record<string, string>, seconds: number): void;
  gauges(read: ReadGauges): void;
}

let recorder: Recorder | undefined;

/**
 * Sets the recorder of all metrics, or removes it. Call before the parts are opened, because they register their gauges
 * once.
 */
export const recordWith = (to: Recorder | undefined): void => {
  recorder = to;
};

export const isRecording = (): boolean => recorder !== undefined;

/** `by` 0 creates a series before anything is counted, so that queries which compare it find it. */
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

/** `read` is called at a scrape, at most once in two seconds. If it rejects, its gauges are missing. */
export function gauges(read: ReadGauges): void {
  recorder?.gauges(read);
}
