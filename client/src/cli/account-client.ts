#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { fieldTypes } from './field-types.ts';

/** `npx account-client types [FILE]`. Exit code 2: wrong use, or a file that cannot be used. */
declare const process: {
  argv: string[];
  env: Record<string, string | undefined>;
  exitCode: number;
  stdout: { write(text: string): void };
  stderr: { write(text: string): void };
};

const usage = `Usage: npx account-client types [FILE.json] > profile-fields.d.ts

FILE.json is the file of PROFILE_FIELDS; without it, the one that this variable names.
`;

function refuse(message: string): void {
  process.stderr.write(message);
  process.exitCode = 2;
}

const [command, file = process.env['PROFILE_FIELDS'], ...rest] = process.argv.slice(2);
if (command !== 'types' || !file || rest.length > 0) refuse(usage);
else {
  try {
    process.stdout.write(fieldTypes(JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))));
  } catch (error) {
    refuse(`${file} cannot be used: ${(error as Error).message}\n`);
  }
}
