import { PortableMigration } from './portable.ts';

/** Where an application sends its users after a logout. */
export class EndsOfApplications extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('applications', {
      // At most 20 addresses of 500 characters.
      post_logout_redirect_uris: `varchar(10240) ${this.key} not null default ''`,
    });
  }

  override async down(): Promise<void> {
    await this.dropColumns('applications', ['post_logout_redirect_uris']);
  }
}
