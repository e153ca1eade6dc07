import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';
import { production } from './config-problems.ts';

test.each([
  [{}, undefined],
  [{ SCAN_URL: 'clamd://127.0.0.1:3310' }, { url: 'clamd://127.0.0.1:3310', allowsWhenDown: false }],
  [
    { SCAN_URL: 'clamd://clamav', SCAN_DOWN: 'allow' },
    { url: 'clamd://clamav', allowsWhenDown: true },
  ],
  [{ SCAN_URL: 'clamd://[::1]:3310/' }, { url: 'clamd://[::1]:3310/', allowsWhenDown: false }],
  [
    { SCAN_URL: 'https://user:secret@scan.example.com/files?v=1', SCAN_DOWN: 'wait' },
    { url: 'https://user:secret@scan.example.com/files?v=1', allowsWhenDown: false },
  ],
  [{ SCAN_URL: 'http://scan.internal/' }, { url: 'http://scan.internal/', allowsWhenDown: false }],
])('%j', (env, scan) => {
  expect(parseConfig(env).scan).toEqual(scan);
});

test.each([
  [{ SCAN_URL: 'clamav:3310' }, /SCAN_URL must be an address that starts with clamd:\/\/ or https:\/\//],
  [{ SCAN_URL: 'clamd:///run/clamd.sock' }, /SCAN_URL must look like clamd:\/\/host:3310/],
  [{ SCAN_URL: 'clamd://user@host' }, /SCAN_URL must look like/],
  [{ SCAN_URL: 'clamd://host/path' }, /SCAN_URL must look like/],
  [{ SCAN_URL: 'https://host/#a' }, /SCAN_URL must have no fragment/],
  [{ SCAN_URL: 'clamd://host', SCAN_DOWN: 'refuse' }, /SCAN_DOWN/],
  [{ SCAN_DOWN: 'allow' }, /SCAN_URL is missing: SCAN_DOWN applies only to a scanner/],
  [{ ...production, SCAN_URL: 'http://scan.internal/' }, /SCAN_URL must start with https:\/\//],
])('%j is refused', (env, message) => {
  expect(() => parseConfig(env)).toThrow(message);
});

test.each([
  ['clamd://clamav:3310', 1],
  ['clamd://127.0.0.1:3310', 0],
  ['clamd://LOCALHOST', 0],
  ['https://scan.example.com/', 0],
  ['http://127.0.0.1:8080/', 0],
])('in production SCAN_URL=%s has %d warnings', (SCAN_URL, warnings) => {
  const about = parseConfig({ ...production, SCAN_URL }).warnings.filter((text) => text.startsWith('SCAN_URL'));
  expect(about).toHaveLength(warnings);
});
