import { ConfigError, parseConfig } from '../../../server/config/index.ts';

/** The error of a start with this environment; empty if it would start. */
export function problemsOf(environment: Record<string, string>): string {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}
