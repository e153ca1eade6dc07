import type { Config } from '../config/index.ts';

const readers: Record<Config['publicUsers'], string> = {
  full: 'everyone can read the names and addresses of all users',
  'without-email': 'everyone can read the names of all users, but no addresses',
  session: 'every logged-in user can read the names and addresses of all',
  off: 'only administrators can read users',
};

const registrants = ({ mode, domains }: Config['registration']): string =>
  ({
    open: 'everyone can create an account',
    domains: `addresses of ${domains.join(', ')} can create an account, and invited ones`,
    invited: 'only invited addresses can create an account',
    closed: 'nobody can create an account',
  })[mode];

interface Exposure {
  text: string;
  /** What most services should set instead. Only in production. */
  remedy?: string;
}

/** interface.md section 8. */
const isDefault = ({ points, seconds }: Config['rates']['login']) => points === 5 && seconds === 15 * 60;

/** A sentence each on who can register, who can read users, and how many of one office can log in. */
export function exposure({
  publicUsers,
  registration,
  rates: { login },
  production,
}: Pick<Config, 'publicUsers' | 'registration' | 'rates' | 'production'>): Exposure[] {
  const remedyIf = (isDoubtful: boolean, remedy: string) => (production && isDoubtful ? { remedy } : {});
  return [
    {
      text: `PUBLIC_USERS is ${publicUsers}: ${readers[publicUsers]}`,
      ...remedyIf(publicUsers === 'full', 'set PUBLIC_USERS=off, unless your product shows its users to everyone'),
    },
    { text: `REGISTRATION is ${registration.mode}: ${registrants(registration)}` },
    {
      text: `LIMIT_LOGIN is ${login.points}/${login.seconds}: so many logins of one client address in so many seconds, right passwords included`,
      ...remedyIf(
        isDefault(login),
        'set LIMIT_LOGIN=100/900: an office behind one address is locked out otherwise. LIMIT_ACCOUNT and LIMIT_DEVICE stop those who guess',
      ),
    },
  ];
}
