import { Readable } from 'node:stream';
import type { Config } from '../../config/index.ts';
import type { Scanner } from '../../parts/scanner/contract.ts';
import { openScanner } from '../../parts/scanner/index.ts';
import { sentenceOf } from '../../telemetry/log.ts';
import { type Check, type Finding, ok, problem, warning } from './finding.ts';

const SCAN_MS = 8000;

/** The test file of EICAR, in two parts: scanners would find it in this file. */
const testFile = Buffer.from(['X5O!P%@AP[4\\PZX54(P^)7CC)7}', '$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join(''));

/** Checks that the scanner of SCAN_URL answers, finds the test file, and takes files of UPLOAD_MAX_BYTES. */
export const checkScanner: Check = async function* (config) {
  const scanner = await openScanner(config);
  if (!scanner) return;
  try {
    await scanner.ping();
    yield ok('it answers');
    yield await testFileFinding(scanner);
    yield await sizeFinding(scanner, config);
  } catch (error) {
    const held =
      config.scan?.allowsWhenDown && (await scanner.isAway()) ? 'files are given out unscanned' : 'files wait';
    yield problem(
      `${sentenceOf(error)}, and ${held}`,
      'start it; SCAN_URL must name it: clamd://host:3310 needs TCPSocket and TCPAddr in clamd.conf',
    );
  }
};

async function testFileFinding(scanner: Scanner): Promise<Finding> {
  const verdict = await scanner.scan({ bytes: Readable.from([testFile]), size: testFile.length }, SCAN_MS);
  switch (verdict.result) {
    case 'infected':
      return ok(`it finds the test file of EICAR (${verdict.finding})`);
    case 'clean':
      return problem('it does not find the test file of EICAR', 'load its signatures; for ClamAV: freshclam');
    case 'unknown':
      return problem(`it does not look at files: ${verdict.answer}`, 'see its log and its configuration');
  }
}

async function sizeFinding(scanner: Scanner, { uploads: { maxBytes } }: Config): Promise<Finding> {
  return (await scanner.takes(maxBytes))
    ? ok('it refuses no file for its size')
    : warning(
        `it refuses files of UPLOAD_MAX_BYTES (${maxBytes}): these wait without end`,
        'set StreamMaxLength, MaxFileSize and MaxScanSize of clamd.conf to at least that',
      );
}
