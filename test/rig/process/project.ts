import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from './custodian.ts';
import { accepts } from './port.ts';
import { spawnGroup, whenReady } from './process-group.ts';

const root = join(import.meta.dirname, '../..');
const execute = promisify(execFile);

/** A project of somebody else, outside of this repository, with the client package from its tarball. */
export interface Project {
  readonly directory: string;
  /** Compiles what is in it with the project's own tsconfig.json; rejects with the compiler's words. */
  compile(): Promise<void>;
  /** Runs a compiled file in Node and answers what it printed, as JSON. */
  run(file: string, env: Record<string, string>): Promise<unknown>;
  /** Carries out a script of its package.json. */
  script(name: string, env: Record<string, string>): Promise<void>;
  /** Starts a server of it by its script, with arguments, and resolves once it accepts connections. */
  serve(name: string, options: { port: number; args?: string[]; env?: Record<string, string> }): Promise<() => unknown>;
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
  if (!existsSync(join(directory, 'package.json')))
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  await execute('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...packages], { cwd: directory });
  const environment = (env: Record<string, string>) => ({ PATH: process.env['PATH'] ?? '', ...env });
  return {
    directory,
    async script(name, env) {
      await execute('npm', ['run', name], { cwd: directory, env: environment(env) });
    },
    async serve(name, { port, args = [], env = {} }) {
      const command = { file: 'npm', args: ['run', name, '--', ...args], cwd: directory };
      const group = spawnGroup({ ...command, env: environment({ PORT: String(port), ...env }) });
      await whenReady(group, () => accepts(port), { what: `npm run ${name} at port ${port}`, within: 20_000 });
      return () => {
        group.signal('SIGKILL');
        return group.exited;
      };
    },
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
