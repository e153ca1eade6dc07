import { ConfigError, parseConfig } from '../../server/config/index.ts';

/** What a start with this environment says; empty where it would not stop. */
export function problemsOf(environment: Record<string, string>): string {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}
