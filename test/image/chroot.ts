import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, matchesGlob, resolve } from 'node:path';
import { type Copy, DockerfileParser, From, type Instruction } from 'dockerfile-ast';
import type { Command } from '../rig/process/process-group.ts';
import { requireBinary } from '../rig/servers/debian.ts';

/** A file system, and how its processes are started. */
export interface Image {
  root: string;
  env: Record<string, string>;
  workdir: string;
  /** uid:gid. */
  user: string;
  command: string[];
  healthcheck: string[];
}

const repository = join(import.meta.dirname, '../..');
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Executes the Dockerfile without a container engine, only on Debian and as root: RUN steps run in a chroot, a
 * directory in `workspace` for each stage. Returns the last stage. Throws at an instruction new to this Dockerfile.
 */
export async function buildImage(workspace: string): Promise<Image> {
  const dockerfile = DockerfileParser.parse(readFileSync(join(repository, 'Dockerfile'), 'utf8'));
  const stages = new Map<string, Image>();
  let image: Image | undefined;
  for (const instruction of dockerfile.getInstructions()) {
    if (instruction instanceof From) {
      const name = instruction.getBuildStage() ?? 'last';
      image = await baseImage(instruction.getImage() ?? '', join(workspace, name));
      stages.set(name, image);
    } else if (image) carryOut(instruction, image, stages);
  }
  if (!image) throw new Error('the Dockerfile has no stage');
  return image;
}

/** The command that starts `args` as process 1 of a container that can write only to its mounts. */
export function containerCommand(
  { root, workdir, user, env }: Image,
  args: string[],
  { readOnly, env: more = {} }: { readOnly: boolean; env?: Record<string, string> },
): Command {
  const mounts = `mount --bind ${root} ${root} && mount -t proc proc ${root}/proc`;
  const seal = readOnly ? ` && mount -o remount,bind,ro ${root}` : '';
  const script = `${mounts}${seal} && cd ${root} && exec /usr/sbin/chroot --userspec=${user} . /usr/bin/env -C ${workdir} "$@"`;
  return {
    file: 'unshare',
    args: ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script, 'sh', ...args],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/tmp', ...env, ...more },
  };
}

function carryOut(instruction: Instruction, image: Image, stages: Map<string, Image>): void {
  const values = instruction.getArguments().map((argument) => argument.getValue());
  const content = instruction.getArgumentsContent() ?? '';
  const exec = (): string[] => JSON.parse(content.slice(content.indexOf('[')));
  switch (instruction.getKeyword()) {
    case 'WORKDIR':
      image.workdir = resolve(image.workdir, content);
      mkdirSync(join(image.root, image.workdir), { recursive: true });
      return;
    case 'USER':
      image.user = content;
      return;
    case 'ENV':
      for (const pair of values) image.env[pair.slice(0, pair.indexOf('='))] = pair.slice(pair.indexOf('=') + 1);
      return;
    case 'COPY': {
      const from = (instruction as Copy).getFromFlag()?.getValue();
      const paths = values.filter((value) => !value.startsWith('--'));
      copy(paths, from ? stages.get(from) : undefined, image);
      return;
    }
    case 'RUN':
      run(content.startsWith('[') ? exec() : ['/bin/sh', '-c', content], image);
      return;
    case 'CMD':
      image.command = exec();
      return;
    case 'HEALTHCHECK':
      image.healthcheck = exec();
      return;
    case 'ARG':
      for (const pair of values) image.env[pair.slice(0, pair.indexOf('='))] = pair.slice(pair.indexOf('=') + 1);
      return;
    case 'EXPOSE':
    case 'LABEL':
      return;
    default:
      throw new Error(`${instruction.getKeyword()} cannot be carried out without an engine`);
  }
}

function run(args: string[], image: Image): void {
  const { file, args: all, env } = containerCommand(image, args, { readOnly: false });
  execFileSync(file, all, { env: { ...env, ...registryAccess(image) }, stdio: ['ignore', 'inherit', 'inherit'] });
}

/** A directory's content is copied; a file keeps its name if the target is a directory. */
function copy(paths: string[], stage: Image | undefined, image: Image): void {
  const target = paths.at(-1) ?? '';
  const destination = join(image.root, resolve(image.workdir, target));
  for (const path of paths.slice(0, -1)) {
    const source = stage ? join(stage.root, path) : join(repository, path);
    const isIntoDirectory = target.endsWith('/') || target === '.';
    const isFile = statSync(source).isFile();
    cpSync(source, isFile && isIntoDirectory ? join(destination, basename(source)) : destination, {
      recursive: true,
      verbatimSymlinks: true,
      preserveTimestamps: true,
      ...(!stage && { filter: isInContext }),
    });
  }
}

const ignored = readFileSync(join(repository, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

/** .dockerignore: the last pattern that matches the path or a parent directory decides. */
function isInContext(path: string): boolean {
  const relative = path.slice(repository.length + 1);
  if (relative === '') return true;
  const parts = relative.split('/');
  const ancestors = parts.map((_, i) => parts.slice(0, i + 1).join('/'));
  const matches = (pattern: string) => ancestors.some((ancestor) => matchesGlob(ancestor, pattern));
  const deciding = ignored.findLast((line) => matches(line.replace(/^!/, '')));
  return deciding === undefined || deciding.startsWith('!');
}

/** Both base images: Debian's minimal system, one of them with Node and npm in /usr/local. */
async function baseImage(name: string, root: string): Promise<Image> {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(dirname(root), { recursive: true });
  execFileSync('cp', ['-a', await debian(), root]);
  const image: Image = { root, env: {}, workdir: '/', user: '0:0', command: [], healthcheck: [] };
  if (name === 'debian:bookworm-slim') return image;
  if (name !== `node:${process.versions.node}-bookworm-slim`) throw new Error(`${name} cannot be made here`);
  cpSync(process.execPath, join(root, 'usr/local/bin/node'));
  const npm = join(execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim(), 'npm');
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true });
  execFileSync('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm')]);
  cpSync('/etc/resolv.conf', join(root, 'etc/resolv.conf'), { dereference: true });
  if (existsSync(CERTIFICATES)) {
    mkdirSync(join(root, dirname(CERTIFICATES)), { recursive: true });
    cpSync(CERTIFICATES, join(root, CERTIFICATES));
  }
  return image;
}

/** Certificates of the machine, because the registry may be behind its proxy. */
const registryAccess = ({ root }: Image): Record<string, string> =>
  existsSync(join(root, CERTIFICATES)) ? { NODE_EXTRA_CA_CERTS: CERTIFICATES } : {};

/** Debian's minimal system without documentation, like its slim image. Built once. */
async function debian(): Promise<string> {
  const root = join(repository, 'node_modules/.cache/image/bookworm');
  if (existsSync(root)) return root;
  const debootstrap = await requireBinary({ names: ['debootstrap'], debianPackage: 'debootstrap' });
  const unfinished = `${root}.${process.pid}`;
  mkdirSync(dirname(root), { recursive: true });
  execFileSync(debootstrap, ['--variant=minbase', 'bookworm', unfinished], { stdio: ['ignore', 'ignore', 'inherit'] });
  const superfluous = ['usr/share/{doc,man,info,locale}', 'var/cache/apt', 'var/lib/apt/lists'];
  for (const path of globSync(superfluous, { cwd: unfinished })) rmSync(join(unfinished, path), { recursive: true });
  execFileSync('mv', [unfinished, root]);
  return root;
}
