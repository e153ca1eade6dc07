import type { Query } from './database-server.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

/** The rights for the service and for its migrations. */
interface Rights {
  service: string[];
  migrations: string[];
}

export const hostRights: Rights = {
  service: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  migrations: ['CREATE', 'ALTER', 'INDEX', 'REFERENCES', 'DROP'],
};
export const replicaRights: Rights = { service: ['SELECT'], migrations: [] };

/** The rights on the database that the account lacks. */
export async function rightsFindings(query: Query, { service, migrations }: Rights): Promise<Finding[]> {
  const [account] = await query<{ name: string; database: string }>(
    'select current_user() as name, database() as `database`',
  );
  const grants = (await query<object>('show grants')).map((row) => String(Object.values(row)[0]));
  const isGranted = rightsIn(grants, account?.database ?? '');
  const lacking = (rights: string[]) => rights.filter((right) => !isGranted(right));
  const [forService, forMigrations] = [lacking(service), lacking(migrations)];
  if (forService.length + forMigrations.length === 0) return [ok('its account has the rights that it needs')];
  // A grant without ON is a role; this server does not list its rights here.
  if (grants.some((grant) => !/ ON /.test(grant))) {
    return [
      warning(
        'its account has rights by a role, which are not listed',
        'see that the role is the default: SET DEFAULT ROLE',
      ),
    ];
  }
  const remedy = (rights: string[]) => `GRANT ${rights.join(', ')} ON \`${account?.database}\`.* TO ${account?.name}`;
  return [
    ...(forService.length > 0 ? [problem(`its account may not ${forService.join(', ')}`, remedy(forService))] : []),
    ...(forMigrations.length > 0
      ? [
          problem(
            `its account may not ${forMigrations.join(', ')}, which migrations need`,
            `${remedy(forMigrations)}, or run \`npm run migrate\` with an account that has them before each upgrade`,
          ),
        ]
      : []),
  ];
}

/** All `GRANT … ON scope TO …` that apply to the whole database. */
function rightsIn(grants: string[], database: string): (right: string) => boolean {
  const rights = grants.flatMap((grant) => {
    const [, list = '', scope = ''] = /^GRANT (.+?) ON (\S+) TO /i.exec(grant) ?? [];
    return isScopeOf(scope, database) ? list.toUpperCase().split(', ') : [];
  });
  return (right) => rights.includes(right) || rights.includes('ALL PRIVILEGES') || rights.includes('ALL');
}

/** Names in grants are patterns: `_` and `%`, unless escaped with a backslash. */
function isScopeOf(scope: string, database: string): boolean {
  if (scope === '*.*') return true;
  const name = /^[`"](.+)[`"]\.\*$/.exec(scope)?.[1];
  if (name === undefined) return false;
  const pattern = name.replace(/\\([_%])|[_%]|[.*+?^${}()|[\]\\]/g, (found, escaped?: string) => {
    if (escaped) return escaped;
    if (found === '_') return '.';
    return found === '%' ? '.*' : `\\${found}`;
  });
  return new RegExp(`^${pattern}$`, 'i').test(database);
}
