import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from './custodian.ts';

const root = join(import.meta.dirname, '../..');
const execute = promisify(execFile);

/** A project of somebody else, outside of this repository, with the client package from its tarball. */
export interface Project {
  readonly directory: string;
  /** Compiles what is in it with the project's own tsconfig.json; rejects with the compiler's words. */
  compile(): Promise<void>;
  /** Runs a compiled file in Node and answers what it printed, as JSON. */
  run(file: string, env: Record<string, string>): Promise<unknown>;
}

/** What `npm pack` makes of client/, as the global setup has built it: built again, it would be gone for a moment for others. */
export async function packClient(): Promise<{ tarball: string; files: string[]; size: number }> {
  const destination = temporaryDirectory('pack');
  const { stdout } = await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', destination], {
    cwd: join(root, 'client'),
  });
  const [packed] = JSON.parse(stdout) as [{ filename: string; size: number; files: { path: string }[] }];
  const files = packed.files.map(({ path }) => path);
  return { tarball: join(destination, packed.filename), files, size: packed.size };
}

/** A new project with some files of ours copied into it, and packages installed as anybody installs them. */
export async function newProject(source: string, packages: string[]): Promise<Project> {
  const directory = join(temporaryDirectory('project'), 'app');
  mkdirSync(directory);
  cpSync(source, directory, { recursive: true });
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  await execute('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...packages], { cwd: directory });
  return {
    directory,
    async compile() {
      await execute(join(root, 'node_modules/.bin/tsc'), ['-p', directory]).catch((error: { stdout: string }) => {
        throw new Error(error.stdout);
      });
    },
    async run(file, env) {
      const { stdout } = await execute(process.execPath, [join(directory, file)], { env, timeout: 30_000 });
      return JSON.parse(stdout);
    },
  };
}
