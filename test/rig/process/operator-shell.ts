import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

/**
 * What a program does here instead of its real action. A rejection is its failure. `npm ci` is one command of npm, which
 * gets the working directory; other commands of that program stay real.
 */
export type Commands = Record<string, (...args: string[]) => Promise<unknown>>;

export interface OperatorShell {
  /** Runs a script in bash up to the first failing command; resolves to its output, or rejects with it. */
  execute(script: string): Promise<string>;
  stop(): Promise<void>;
}

/** A root shell in which the rig replaces some programs, and others, in `links`, are at other places. */
export async function startOperatorShell({
  home,
  commands,
  links,
}: {
  home: string;
  commands: Commands;
  links: Record<string, string>;
}): Promise<OperatorShell> {
  const server = createServer(async (request, response) => {
    const [name = '', ...args] = (await text(request)).trimEnd().split('\n');
    await commands[name]?.(...args).then(
      () => response.end(),
      (error: Error) => response.writeHead(500).end(`${error.stack}\n`),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bin = join(home, 'bin');
  mkdirSync(bin);
  const { port } = server.address() as AddressInfo;
  const curl = `curl --silent --show-error --fail-with-body --data-binary @- http://127.0.0.1:${port} >&2`;
  const ask = (...words: string[]) => `printf '%s\\n' ${words.join(' ')} | ${curl}; exit`;
  for (const [program, names] of Map.groupBy(Object.keys(commands), (name) => name.split(' ')[0] ?? '')) {
    const lines = names.map((name) => {
      const [, subcommand] = name.split(' ');
      return subcommand ? `[ "$1" != ${subcommand} ] || { ${ask(`'${name}'`, '"$PWD"')}; }` : ask(name, '"$@"');
    });
    const script = ['#!/bin/sh', ...lines, `PATH=\${PATH#*:} exec ${program} "$@"\n`].join('\n');
    writeFileSync(join(bin, program), script, { mode: 0o755 });
  }
  for (const [name, program] of Object.entries(links)) symlinkSync(program, join(bin, name));
  const env = { HOME: home, PATH: `${bin}:${process.env['PATH']}:/usr/sbin`, LC_ALL: 'C.UTF-8' };
  return {
    async execute(script) {
      const options = { env, maxBuffer: 1e7 };
      const { stdout, stderr } = await promisify(execFile)(
        'bash',
        ['--norc', '-euo', 'pipefail', '-c', script],
        options,
      );
      return stdout + stderr;
    },
    stop: async () => {
      server.close();
    },
  };
}
