import { PortableMigration } from './portable.ts';

/**
 * `covers_from`: the time of the first act that the token's mails report. `disowned_at`: when the account was disowned
 * with it. In milliseconds since 1970; null in tokens of the release before.
 */
export class ActsOfTokens extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('one_time_tokens', { covers_from: 'bigint', disowned_at: 'bigint' });
  }

  override async down(): Promise<void> {
    await this.dropColumns('one_time_tokens', ['disowned_at', 'covers_from']);
  }
}
