/**
 * What a new password must be beyond the documented composition: not in a list of breached passwords
 * (BREACHED_PASSWORDS_FILE), and hard to guess (PASSWORD_STRENGTH). OWASP ASVS 5.0 6.2.4, 6.2.12. Both are off by
 * default, and neither lets the password leave the process.
 */
import type { Config } from '../../../../config/index.ts';
import { invalidField } from '../../../../errors.ts';
import { type HashList, openHashList } from '../../../../lib/hash-list.ts';
import { createBound } from '../../../../lib/rate-cap.ts';
import { widestNetworkOf } from '../../../../limits/index.ts';
import { wordsAbout } from '../../../../shared/password-words.ts';
import type { Log } from '../../../../telemetry/log.ts';
import { createStrength } from './strength.ts';

const HOUR_MS = 60 * 60_000;

/** The owner of the password. */
interface Owner {
  name?: string | undefined;
  email: string;
}

interface Setting extends Pick<Config, 'passwordStrength' | 'breachedPasswordsFile' | 'siteName'> {
  log: Pick<Log, 'warn'>;
}

export function createPasswordPolicy({ passwordStrength, breachedPasswordsFile, siteName, log }: Setting) {
  const list: HashList | undefined =
    breachedPasswordsFile === undefined ? undefined : openHashList(breachedPasswordsFile);
  const estimate = passwordStrength > 0 ? createStrength() : undefined;
  const mayWarn = createBound({ most: 1, withinMs: HOUR_MS });

  /** False if the file cannot be read: that must not stop registrations. */
  const isBreached = (password: string): boolean => {
    try {
      return list?.has(password) ?? false;
    } catch (error) {
      if (mayWarn('read'))
        log.warn({ err: error }, 'BREACHED_PASSWORDS_FILE cannot be read: passwords are not compared');
      return false;
    }
  };

  return {
    isBreached,

    /** Whether `require` takes a turn in the queue of estimates. */
    estimates: estimate !== undefined,

    /** Rejects with VALIDATION_FAILED for `field`. `ownerOf` is called only if its words matter. */
    async require(
      password: string,
      field: string,
      clientAddress: string,
      ownerOf: () => Owner | Promise<Owner>,
    ): Promise<void> {
      if (isBreached(password)) {
        throw invalidField(
          field,
          'breached',
          'This password appears in a list of stolen passwords. Please choose another one',
        );
      }
      if (!estimate) return;
      const { name, email } = await ownerOf();
      const words = wordsAbout(name, email, siteName);
      const { score, advice } = await estimate({ password, words }, widestNetworkOf(clientAddress));
      if (score >= passwordStrength) return;
      throw invalidField(field, 'too_guessable', ['This password is easy to guess.', ...advice].join(' '));
    },
  };
}

export type PasswordPolicy = ReturnType<typeof createPasswordPolicy>;
