import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type ApplicationKind, applicationKinds } from '../../../entities/index.ts';
import { operator } from '../../activity/caller.ts';
import { type Applications, type ListedApplication, type PublicKey, publicKey } from '../../applications/index.ts';
import { UsageError } from '../failure.ts';
import { iso, plain, table } from '../user/output.ts';

interface Options {
  kind?: string | undefined;
  redirect?: string[] | undefined;
  'post-logout'?: string[] | undefined;
  'backchannel-logout'?: string | undefined;
  'public-keys'?: string | undefined;
  resource?: string[] | undefined;
  scopes?: string | undefined;
  opaque?: boolean | undefined;
  trusted?: boolean | undefined;
}

/** Text for people, and the same as data for `--json`. */
interface Answer {
  text: string;
  data: unknown;
}

interface Command {
  /** For the usage text. */
  takes: string;
  does: string;
  run(applications: Applications, given: string, options: Options): Promise<Answer>;
}

const toData = ({ createdAt, ...application }: ListedApplication) => ({ ...application, createdAt: iso(createdAt) });

function kindIn(text = ''): ApplicationKind {
  const kind = applicationKinds.find((known) => known === text);
  if (kind === undefined) throw new UsageError(`--kind must be one of ${applicationKinds.join(', ')}`);
  return kind;
}

/** The keys of a JSON Web Key Set. */
function keysIn(file: string | undefined): PublicKey[] {
  if (file === undefined) return [];
  try {
    return z.object({ keys: z.array(z.looseObject(publicKey.shape)) }).parse(JSON.parse(readFileSync(file, 'utf8')))
      .keys;
  } catch {
    throw new UsageError('--public-keys must name a file with a JSON Web Key Set');
  }
}

const secretText = (secret: string) => `Its secret, which is shown only now:\n${secret}\n`;

/** Every command: a new one is an entry here. */
export const commands: Record<string, Command> = {
  list: {
    takes: '',
    does: 'lists the applications',
    async run(applications) {
      const all = await applications.list();
      const rows = all.map((one) => [
        one.id,
        plain(one.name),
        one.kind,
        one.disabledBy === null ? 'enabled' : 'disabled',
        one.scopes.join(','),
      ]);
      const text = all.length === 0 ? 'No application\n' : table([['ID', 'NAME', 'KIND', 'STATE', 'SCOPES'], ...rows]);
      return { text, data: all.map(toData) };
    },
  },
  add: {
    takes:
      'NAME --kind KIND [--redirect URI]… [--post-logout URI]… [--scopes A,B] [--resource URI]… [--opaque] [--trusted] [--backchannel-logout URI] [--public-keys FILE]',
    does: `adds an application (${applicationKinds.join(', ')}) and prints its secret, if it has no keys`,
    async run(applications, name, options) {
      const { kind, redirect = [], 'post-logout': postLogout = [], resource = [] } = options;
      const { scopes = 'openid', opaque, trusted = false } = options;
      const { application, secret } = await applications.create(
        {
          name,
          kind: kindIn(kind),
          redirectUris: redirect,
          postLogoutRedirectUris: postLogout,
          resources: resource,
          scopes: scopes.split(','),
          tokenFormat: opaque ? 'opaque' : 'jwt',
          trusted,
          logoUrl: null,
          backchannelLogoutUri: options['backchannel-logout'] ?? null,
          publicKeys: keysIn(options['public-keys']),
        },
        operator,
      );
      const text = `${application.id} was added.${secret === undefined ? '\n' : ` ${secretText(secret)}`}`;
      return { text, data: { ...toData(application), ...(secret !== undefined && { secret }) } };
    },
  },
  remove: {
    takes: 'ID',
    does: 'removes an application and all access that users gave it',
    async run(applications, id) {
      await applications.remove(id, operator);
      return { text: `${id} was removed.\n`, data: { id } };
    },
  },
  rotate: {
    takes: 'ID',
    does: 'makes a new secret; the former one is accepted too for 24 hours',
    async run(applications, id) {
      const { secret, formerUntil } = await applications.rotateSecret(id, operator);
      const text = `${id} has a new secret. ${secretText(secret)}The former one is valid until ${iso(formerUntil)}.\n`;
      return { text, data: { secret, formerUntil: iso(formerUntil) } };
    },
  },
};
