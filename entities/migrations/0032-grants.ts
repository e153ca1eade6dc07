import { PortableMigration } from './portable.ts';

/**
 * Times are milliseconds since 1970 (UTC). No foreign key to applications: a removed one is deleted in one statement, its
 * grants in batches.
 */
export class Grants extends PortableMigration {
  override up(): void {
    const { key, text } = this;
    this.createTable(
      'grants',
      [
        `id varchar(36) ${key} not null primary key`,
        `user_id varchar(41) ${key} not null`,
        `application_id varchar(36) ${key} not null`,
        `session_id varchar(36) ${key} not null`,
        'epoch int not null',
        `scopes varchar(4096) ${key} not null`,
        `resources varchar(10240) ${key} not null`,
        'created_at bigint not null',
        'last_used_at bigint not null',
        'expires_at bigint not null',
        'constraint grants_of_session unique (session_id, application_id)',
        'constraint grants_user foreign key (user_id) references users (id) on delete cascade',
      ],
      { grants_of_user: 'user_id, application_id', grants_of_application: 'application_id', grants_end: 'expires_at' },
    );
    this.createTable(
      'oauth_artifacts',
      [
        `id varchar(43) ${key} not null primary key`,
        `grant_id varchar(36) ${key} not null`,
        `payload text ${text} not null`,
        'consumed_at bigint',
        `consumed_by varchar(43) ${key}`,
        'expires_at bigint not null',
        'constraint oauth_artifacts_grant foreign key (grant_id) references grants (id) on delete cascade',
      ],
      { oauth_artifacts_of_grant: 'grant_id', oauth_artifacts_end: 'expires_at' },
    );
  }

  override down(): void {
    this.addSql('drop table oauth_artifacts');
    this.addSql('drop table grants');
  }
}
