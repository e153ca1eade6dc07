import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { unavailable } from '../errors.ts';
import { createOutage } from '../lib/outage.ts';
import { rejects, type Scanner, type SentFile, type Verdict } from '../parts/scanner/contract.ts';
import type { Log } from '../telemetry/log.ts';
import { count, gauges } from '../telemetry/metrics.ts';
import { refusedImage } from './images/image-cost.ts';

/** A user waits for an image. */
const IMAGE_MS = 5000;
/** For a file in the background, with a second for each megabyte. */
const FILE_MS = 30_000;
const BYTES_PER_MS = 1000;
/** Less than a scrape waits for a gauge: a scanner that hangs must not be missing in the metrics. */
const UP_MS = 1500;

const outcomes = ['clean', 'infected', 'unknown', 'allowed', 'failed'] as const;

/** `allowed`: the scanner is away, and SCAN_DOWN is `allow`. */
type Examined = Verdict | { result: 'allowed' };

interface Parts {
  scanner: Scanner;
  /** SCAN_DOWN is `allow`. */
  allowsWhenDown: boolean;
  log: Log;
}

/** Asks the scanner about files. It rejects with SERVICE_UNAVAILABLE if the file must wait. */
export function createExamination({ scanner, allowsWhenDown, log }: Parts) {
  const outage = createOutage({
    began: (err) =>
      log.warn(
        { err },
        `the scanner does not respond: files ${allowsWhenDown ? 'are given out unscanned if it is away' : 'wait'}`,
      ),
    ended: () => log.info('the scanner responds again'),
  });
  for (const outcome of outcomes) count('account_upload_scans_total', { outcome }, 0);
  gauges(async () => {
    const isDown = await Promise.race([rejects(scanner.ping()), delay(UP_MS, true, { ref: false })]);
    return { account_scanner_up: isDown ? 0 : 1 };
  });

  const ask = async (file: SentFile, withinMs: number): Promise<Examined> => {
    try {
      const verdict = await scanner.scan(file, withinMs);
      outage.succeeded();
      return verdict;
    } catch (error) {
      outage.failed(error);
      // A file that only keeps the scanner busy must not pass.
      if (allowsWhenDown && (await scanner.isAway())) return { result: 'allowed' };
      throw error;
    }
  };
  const examine = async (file: SentFile, withinMs: number): Promise<Examined> => {
    try {
      const examined = await ask(file, withinMs);
      count('account_upload_scans_total', { outcome: examined.result });
      return examined;
    } catch (error) {
      count('account_upload_scans_total', { outcome: 'failed' });
      throw unavailable(error);
    }
  };

  return {
    file: (file: SentFile) => examine(file, FILE_MS + file.size / BYTES_PER_MS),

    /** Rejects with VALIDATION_FAILED an image that is not clean, with SERVICE_UNAVAILABLE one that must wait. */
    async requireCleanImage(pieces: Uint8Array[], size: number): Promise<'clean' | 'allowed'> {
      const examined = await examine({ bytes: Readable.from(pieces), size }, IMAGE_MS);
      if (examined.result === 'infected') {
        log.info({ finding: examined.finding }, 'an image is not clean and is refused');
        throw refusedImage('infected', 'The scanner found malware in this file');
      }
      if (examined.result === 'unknown')
        throw unavailable(new Error(`the scanner refused an image: ${examined.answer}`));
      return examined.result;
    },
  };
}

export type Examination = ReturnType<typeof createExamination>;
