/**
 * Password hashes of other products, each created by its own implementation, none by the tested code:
 * - bcrypt: `$2b$`, `$2a$` by Python's bcrypt 5.0.0, `$2y$` by libxcrypt 4.4.33 (Perl's `crypt`)
 * - Argon2 by argon2-cffi 25.1.0, the reference implementation
 * - better-auth by better-auth 1.7.25 (`hashPassword` of better-auth/crypto)
 * - Firebase: the sample of github.com/firebase/scrypt
 * - Django by Django 5.2.17 (`make_password`, and the hashers' `encode` for fewer rounds)
 * - `$pbkdf2…$`, `$scrypt$` by passlib 1.7.4
 * - Keycloak: credentials of realm exports that are published with their passwords, in the form that docs/migration/keycloak.md gives them
 * - sha-crypt by libxcrypt 4.4.33 (Python's `crypt`); those of “Hello world!” by OpenSSL 3.0 (`openssl passwd -5`, `-6`), as in the specification
 */
export interface ForeignVector {
  from: string;
  hash: string;
  password: string;
}

/** With characters of two and three bytes in UTF-8. */
const PASSWORD = 'Pässwörter-1843 ❤';

const hashes: Record<string, string> = {
  'bcrypt 2a': '$2a$05$za6oZ.GHYt6J1qR0WCZMFOpVNT9bLDYxvm1u7bhRu.SKot8xz.NNW',
  'bcrypt 2b': '$2b$05$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  'bcrypt 2y': '$2y$05$abcdefghijklmnopqrstuuBK9.vG9ZIQuoexhMUdbvjhRZfUg3rO6',
  argon2id: '$argon2id$v=19$m=1024,t=2,p=2$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  argon2i: '$argon2i$v=19$m=1024,t=2,p=2$+VDqDkBiAlfqJcOTNYUh6A$lDQg6Aix8Q/q2kzMxdZ9czZE2dJb9IPxwij3+nMsNcI',
  'better-auth':
    'f9319211b93b3af9d6d3162d6130a2d8:97ddf04884e86a1f7923fadcdc179feae25893d644622808db929ea74211796597680de1757dc2cd461491fe3ba4742d8053e2f2f40648412431e72cd61e096f',
  'Django PBKDF2': 'pbkdf2_sha256$1500$KrT9xkcXzLJ3$gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
  'Django PBKDF2 with SHA-1': 'pbkdf2_sha1$1500$KrT9xkcXzLJ3$HaT/MrARsEhcoQncIwtfn76BXiI=',
  'Django scrypt':
    'scrypt$1024$KrT9xkcXzLJ3$8$5$XLkh6zi1/de04rbqdG7wYiq5CApC75sIytyBdVLfEmaUdnRv5g7UiCy1u67AOfpt9quqsLLnGYW6n2hN3cgLmg==',
  'passlib PBKDF2 with SHA-1': '$pbkdf2$1500$R6gVQmitVeo957zX.j.nFA$XdaArjBahQRPk69DYQrTJpbfN2o',
  'passlib PBKDF2 with SHA-256':
    '$pbkdf2-sha256$1500$ytkb47wXgnAupZRy7r0XQg$bqpEEYjwxEml.EnmAAJLwVn5aLRJ54k6lzxz1sD2/Ro',
  'passlib PBKDF2 with SHA-512':
    '$pbkdf2-sha512$1500$uzfGWIvx/r/XOudcay0FAA$/UEY2B7bHAkYd3RaugdobP5/XwNtimcSyFQSUJlVnzIyUqJ//ufPXjEMqoArrCbswKegHtPFEaL1ORWBXFwcFw',
  'passlib scrypt': '$scrypt$ln=10,r=8,p=2$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'sha256-crypt': '$5$sa.t/4$DJAkDAGxqL2R77MJqS6mMCz93VMDoKn5EhcQsuzLjZA',
  'sha256-crypt with rounds': '$5$rounds=1500$saltsaltsaltsalt$o9roRx9a3WHKEBEJKFSnJ0nhod.bAon8kVKROoctX21',
  'sha512-crypt': '$6$sa.t/4$Y0zv8kBdDA1QMSZt2tP.qjnDt1QqwY2eW/IHTPg4viDk6XBleZWxO7O8DalSz5Z9ppMUd3jC0NI/iDx9LheNs/',
  'sha512-crypt with rounds':
    '$6$rounds=1500$saltsaltsaltsalt$ZgOKxBiR9ZgaiHaDYVF8vJKtsEz2qgDaKtHaPAhDHieYmYxI2J7Cxy3UPXXcskSbkeZgcXa00L.g7MDV6ZOvH.',
};

export const foreignVectors: readonly ForeignVector[] = [
  ...Object.entries(hashes).map(([from, hash]) => ({ from, hash, password: PASSWORD })),
  {
    from: 'Firebase',
    hash: '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
    password: 'user1password',
  },
  {
    from: 'Keycloak PBKDF2',
    hash: '$pbkdf2-sha256$27500$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w==',
    password: 'admin',
  },
  {
    from: 'Keycloak Argon2',
    hash: '$argon2id$v=19$m=7168,t=5,p=1$Cf9AYCE5pAbb4CKEF0GUTA$BruFLfFkjH/8erZ26NnrbkOrWiZuQyDRCHD9o0R6Scg',
    password: 'password',
  },
  {
    from: 'sha256-crypt of OpenSSL',
    hash: '$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5',
    password: 'Hello world!',
  },
  {
    from: 'sha512-crypt of OpenSSL',
    hash: '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1',
    password: 'Hello world!',
  },
];

/** Hashes with parameters that would stop the service. */
export const costlyHashes: Record<string, string> = {
  bcrypt: '$2b$15$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  'the dearest bcrypt': '$2b$31$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  'the memory of argon2':
    '$argon2id$v=19$m=262145,t=1,p=1$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  'the passes of argon2':
    '$argon2id$v=19$m=1024,t=4294967295,p=1$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  'the lanes of argon2':
    '$argon2id$v=19$m=2048,t=1,p=255$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  'the memory of scrypt': '$scrypt$ln=19,r=8,p=1$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'the lanes of scrypt': '$scrypt$ln=14,r=8,p=1000$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'all work of scrypt': '$scrypt$ln=18,r=8,p=3$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'the blocks of scrypt':
    '$scrypt$ln=1,r=1048576,p=2$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'the lanes of scrypt with hardly a round':
    '$scrypt$ln=1,r=1,p=1025$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'scrypt of Django': `scrypt$${2 ** 24}$KrT9xkcXzLJ3$8$5$XLkh6zi1/de04rbqdG7wYiq5CApC75sIytyBdVLfEmY=`,
  Firebase:
    '$fbscrypt$v=1,n=20,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  PBKDF2: 'pbkdf2_sha256$10000001$KrT9xkcXzLJ3$gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
  'two blocks of PBKDF2':
    '$pbkdf2-sha256$5000001$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w==',
  'four blocks of PBKDF2 with SHA-1':
    '$pbkdf2$2500001$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w==',
  'PBKDF2 with SHA-512':
    '$pbkdf2-sha512$3333334$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w==',
  'sha512-crypt':
    '$6$rounds=999999999$sa.t/4$Y0zv8kBdDA1QMSZt2tP.qjnDt1QqwY2eW/IHTPg4viDk6XBleZWxO7O8DalSz5Z9ppMUd3jC0NI/iDx9LheNs/',
  'our own': '10000001:c2FsdHNhbHRzYWx0c2FsdA==:gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
};

/** Hashes just within the bounds, at almost no cost to parse. */
export const dearHashes: Record<string, string> = {
  bcrypt: '$2b$14$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  argon2: '$argon2id$v=19$m=262144,t=4,p=1$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  'the lanes of argon2, and the least memory for them':
    '$argon2id$v=19$m=128,t=1,p=16$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  scrypt: '$scrypt$ln=18,r=8,p=2$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'the lanes of scrypt': '$scrypt$ln=12,r=8,p=128$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'the smallest blocks of scrypt':
    '$scrypt$ln=15,r=1,p=1$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  PBKDF2: 'pbkdf2_sha256$10000000$KrT9xkcXzLJ3$gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
  'two blocks of PBKDF2':
    '$pbkdf2-sha256$5000000$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w==',
  'PBKDF2 with SHA-512':
    '$pbkdf2-sha512$3333333$SWU35ecF1zm/VYEcvzdNJg==$31MudlHfx763mvpL+ZJU/etLgu2qFt0NpX+xyK0f8MCxOagc5N5+LCLQ/lUx8PJA6+eflW/eRQcnqGR7L8qb7w==',
  'the fewest rounds of sha512-crypt':
    '$6$rounds=1000$sa.t/4$Y0zv8kBdDA1QMSZt2tP.qjnDt1QqwY2eW/IHTPg4viDk6XBleZWxO7O8DalSz5Z9ppMUd3jC0NI/iDx9LheNs/',
  'sha512-crypt':
    '$6$rounds=1000000$sa.t/4$Y0zv8kBdDA1QMSZt2tP.qjnDt1QqwY2eW/IHTPg4viDk6XBleZWxO7O8DalSz5Z9ppMUd3jC0NI/iDx9LheNs/',
};

/** Texts that are not hashes, or of unknown forms. */
export const unknownHashes: readonly string[] = [
  '',
  'x',
  'Analytical-Engine-1843',
  '5f4dcc3b5aa765d61d8327deb882cf99',
  '$1$saltstrin$MGOhXFMQ8yEYwwbUYbLcb1',
  '$2x$05$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  '$2b$05$tooShort',
  '$2b$03$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  '$2b$32$.cFKwHxejlcpG3SsFYuepuEl1C.MkZfQ8H5Q7pWK4K6EOd4Bq.aFq',
  '$argon2d$v=19$m=1024,t=2,p=2$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  '$argon2id$v=19$m=8,t=2,p=2$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  // Bits that no encoder sets: the library does not read them.
  '$argon2id$v=19$m=1024,t=2,p=2$3zEtnRp7bSH+vO43YBHyCB$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse0',
  '$argon2id$v=19$m=1024,t=2,p=2$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5yse1',
  '$argon2id$v=19$m=1024,t=2,p=2$3zEtnRp7bSH+vO43YBHyCA$KdraK4y08ZbB5WgIp6mIyeVCvM5q0ULUTTHVAW5ys',
  // RFC 7914 section 2: N is less than 2^(16 r).
  '$scrypt$ln=16,r=1,p=1$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  // Its key encrypts less than was stored.
  '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  '$scrypt$ln=0,r=8,p=1$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  '$scrypt$ln=14,r=8,p=0$AIDwHkPoPWcMwfi/F8I4Zw$12+fhut/EjD3+6dHBfp2R3YoaHsOBVYz4L+EDtvG95s',
  'scrypt$1000$KrT9xkcXzLJ3$8$5$XLkh6zi1/de04rbqdG7wYiq5CApC75sIytyBdVLfEmY=',
  'pbkdf2_sha256$0$KrT9xkcXzLJ3$gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
  'pbkdf2_md5$1500$KrT9xkcXzLJ3$gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
  'bcrypt_sha256$$2b$12$Ac1I0feQBhTbZwewsFYv.O9ByKJ5y5vHh/m8ikCxpqOXNH1OKnMVa',
  '$6$rounds=10$sa.t/4$Y0zv8kBdDA1QMSZt2tP.qjnDt1QqwY2eW/IHTPg4viDk6XBleZWxO7O8DalSz5Z9ppMUd3jC0NI/iDx9LheNs/',
  '$6$sa.t/4$tooShort',
  'pbkdf2_sha256$1500$KrT9xkcXzLJ3$gq==',
  '$pbkdf2-sha256$1500$ytkb47wXgnAupZRy7r0XQg$bqpEEYjwxEml',
  '$scrypt$ln=10,r=8,p=2$AIDwHkPoPWcMwfi/F8I4Zw$12+f',
  '0:c2FsdHNhbHRzYWx0c2FsdA==:gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
  '1000:c2FsdHNhbHRzYWx0c2FsdA==:gqRFaeYY3UI=',
  'NaN:c2FsdA==:gqRFaeYY3UJoilcAQD2U+hX6K1mRxmo/XSyAa82HhWc=',
];
