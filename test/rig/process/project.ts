import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../servers/custodian.ts';
import { accepts } from '../servers/port.ts';
import { START_MS } from '../until.ts';
import { spawnGroup, whenReady } from './process-group.ts';

const root = join(import.meta.dirname, '../../..');
const execute = promisify(execFile);

/** A separate project outside this repository, with the client package from its tarball. */
export interface Project {
  readonly directory: string;
  /** Compiles it with its own tsconfig.json; rejects with the compiler's output. */
  compile(): Promise<void>;
  /** Runs a compiled file in Node and returns its output, parsed as JSON. */
  run(file: string, env: Record<string, string>): Promise<unknown>;
  /** Runs a script of its package.json. */
  script(name: string, env: Record<string, string>): Promise<void>;
  /** Starts a server by one of its scripts, with arguments, and resolves once it accepts connections. */
  serve(name: string, options: { port: number; args?: string[]; env?: Record<string, string> }): Promise<() => unknown>;
}

/** The tarball of client/, as built by the global setup: a rebuild would remove it for other tests for a moment. */
export async function packClient(): Promise<{ tarball: string; files: string[]; size: number }> {
  const destination = temporaryDirectory('pack');
  const { stdout } = await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', destination], {
    cwd: join(root, 'client'),
  });
  const [packed] = JSON.parse(stdout) as [{ filename: string; size: number; files: { path: string }[] }];
  const files = packed.files.map(({ path }) => path);
  return { tarball: join(destination, packed.filename), files, size: packed.size };
}

/** A new project with copies of some of our files, and packages installed as usual. */
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
      await whenReady(group, () => accepts(port), { what: `npm run ${name} at port ${port}`, within: START_MS });
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
      const { stdout } = await execute(process.execPath, [join(directory, file)], { env, timeout: START_MS });
      return JSON.parse(stdout);
    },
  };
}
