/*
 * Units of two ERC-20 tokens on L1: commit, withdraw, enter, settle, renew, cancel.
 *
 * MINTED is one of our tokens, which may have a cap; HELD is a token that an escrow keeps. Alice is
 * honest; Eve is the operator and owns vaults too. Each action is one transaction. `-DNO_RULE`
 * removes one rule, and the model then has a trace that breaks an assertion.
 *
 * What must hold after each transaction:
 *   backed   the escrow pays no more than it holds
 *   kept     units of vaults and units on L1 are what was minted, and none is lost on the way
 *   once     an order is filled at most once, and never after its maker cancelled it
 *   whole    one signed renewal makes one vault
 *   exit     what Alice entered can be withdrawn: no cap is in its way
 */
#ifndef VAULTS
#define VAULTS 6
#endif
/* How many batch vaults the operator commits. */
#ifndef COMMITS
#define COMMITS 3
#endif
#define MAX_UNITS 3
#define CAP 3

#define MINTED 0
#define HELD 1

#define ALICE 1
#define EVE 2

typedef Vault {
  byte asset;
  byte owner;
  byte amount;
  byte taken;
  bit made;
  bit entered;
}

Vault v[VAULTS];
byte used;
byte makings;
byte commits;
/* Units of the token on L1 outside of the escrow: Alice's, and Eve's. */
byte alices[2];
byte eves[2];
byte held;
/* Units that a mint or, of HELD, the outside world brought in. */
byte brought[2];
bit capped;
/* Alice's order: one unit of a vault of hers for one unit of the other token. */
bit ordered;
bit cancelled;
byte orderedVault;
byte orderedBefore;
byte fills;
/* Vaults that Alice's signed renewal has made. */
byte renewals;
byte x, n, sum;

#define REST(i) (v[i].amount - v[i].taken)

#ifdef NO_MADE_ONLY
#define COUNTS(i) true
#else
#define COUNTS(i) (v[i].asset == MINTED || v[i].made)
#endif

#ifdef NO_WITHDRAWN_BEFORE
#define ORDER_FITS(i) (v[i].taken < v[i].amount)
#else
#define ORDER_FITS(i) (v[i].taken == orderedBefore && v[i].taken < v[i].amount)
#endif

#ifdef NO_CANCEL
#define ORDER_LIVE ordered
#else
#define ORDER_LIVE (ordered && !cancelled)
#endif

#ifdef NO_CAP_CHECK
#define ENTERABLE(asset) true
#else
#define ENTERABLE(ofAsset) (ofAsset == HELD || !capped)
#endif

#ifdef NO_LIMIT
#define FITS(units) true
#else
#define FITS(units) (units <= MAX_UNITS)
#endif

#ifdef NO_WHOLE_LIST
#define RENEWABLE true
#else
#define RENEWABLE (renewals == 0)
#endif

/* The units of vaults that count, and those on L1, for each token. */
inline check() {
  sum = 0;
  x = 0;
  do
  :: x < used ->
    sum = sum + (v[x].asset == MINTED -> REST(x) : 0);
    x++
  :: else -> break
  od;
  /* kept */
  assert(sum + alices[MINTED] + eves[MINTED] == brought[MINTED]);
  sum = 0;
  x = 0;
  do
  :: x < used ->
    sum = sum + (v[x].asset == HELD && v[x].made -> REST(x) : 0);
    x++
  :: else -> break
  od;
  /* backed */
  assert(sum == held);
  /* once */
  assert(fills <= 1);
  /* whole */
  assert(renewals <= 1);
  x = 0;
  n = 0;
  sum = 0
}

inline add(ofAsset, who, units, isMade) {
  v[used].asset = ofAsset;
  v[used].owner = who;
  /* A vault of more units than L1 pays is void. */
  v[used].amount = (units <= MAX_UNITS -> units : 0);
  v[used].made = isMade;
  used++
}

/* The operator commits a mint of any token. Nothing backs a batch vault of HELD. */
inline commit(ofAsset, who, units) {
  d_step {
    used < VAULTS && commits < COMMITS && brought[ofAsset] + units <= 2 * MAX_UNITS;
    commits++;
    brought[ofAsset] = brought[ofAsset] + (ofAsset == MINTED -> units : 0);
    add(ofAsset, who, units, 0);
    check()
  }
}

#define SUPPLY (alices[MINTED] + eves[MINTED])

inline withdraw(i, units) {
  d_step {
    i < used && COUNTS(i) && units <= REST(i) &&
      (v[i].asset == HELD || !capped || SUPPLY + units <= CAP);
    v[i].taken = v[i].taken + units;
    /* backed */
    assert(v[i].asset == MINTED || held >= units);
    held = held - (v[i].asset == HELD -> units : 0);
    alices[v[i].asset] = alices[v[i].asset] + (v[i].owner == ALICE -> units : 0);
    eves[v[i].asset] = eves[v[i].asset] + (v[i].owner == EVE -> units : 0);
    check()
  }
}

/* Alice enters units of hers. */
inline enter(ofAsset, units) {
  d_step {
    used < VAULTS && makings < 3 && alices[ofAsset] >= units && ENTERABLE(ofAsset);
    makings++;
    alices[ofAsset] = alices[ofAsset] - units;
    held = held + (ofAsset == HELD -> units : 0);
    add(ofAsset, ALICE, units, 1);
    v[used - 1].entered = 1;
    check()
  }
}

/* A token that keeps a fee brings less than was asked. */
inline enterWithFee() {
  d_step {
    used < VAULTS && makings < 3 && alices[HELD] >= 2;
    makings++;
    alices[HELD] = alices[HELD] - 2;
#ifdef NO_EXACT_PULL
    held = held + 1;
    add(HELD, ALICE, 2, 1);
#else
    alices[HELD] = alices[HELD] + 2;
#endif
    check()
  }
}

inline order(i) {
  d_step {
    !ordered && i < used && v[i].owner == ALICE && COUNTS(i) && REST(i) > 0;
    ordered = 1;
    orderedVault = i;
    orderedBefore = v[i].taken
  }
}

/* One unit of Alice's vault against one unit of Eve's vault of the other token. */
inline settle(i, j) {
  d_step {
    used + 2 <= VAULTS && makings < 3 && i < used && j < used && ORDER_LIVE &&
      i == orderedVault && ORDER_FITS(i) && v[j].owner == EVE && REST(j) > 0 &&
      v[i].asset != v[j].asset && COUNTS(i) && COUNTS(j);
    /* once */
    assert(!cancelled);
    fills++;
    makings++;
    v[i].taken++;
    v[j].taken++;
    add(v[i].asset, EVE, 1, 1);
#ifndef NO_WHOLE_TRADE
    add(v[j].asset, ALICE, 1, 1);
#endif
    check()
  }
}

/* Alice signs that two vaults of a token go into one. */
inline renew(i, j) {
  d_step {
    used < VAULTS && makings < 3 && i < used && j < used && v[i].owner == ALICE &&
      v[j].owner == ALICE && v[i].asset == v[j].asset && COUNTS(i) && COUNTS(j) &&
      REST(i) > 0 && REST(j) > 0 && RENEWABLE && FITS(REST(i) + REST(j));
    makings++;
    renewals++;
    n = REST(i) + REST(j);
    v[i].taken = v[i].amount;
    v[j].taken = v[j].amount;
    add(v[i].asset, ALICE, n, 1);
    check()
  }
}

#ifdef NO_WHOLE_LIST
/* Somebody sends the signed list in two halves. */
inline renewHalf(i) {
  d_step {
    used < VAULTS && makings < 3 && i < used && v[i].owner == ALICE && COUNTS(i) && REST(i) > 0;
    makings++;
    renewals++;
    n = REST(i);
    v[i].taken = v[i].amount;
    add(v[i].asset, ALICE, n, 1);
    check()
  }
}
#endif

/* What Alice entered can be withdrawn now. */
inline tryExit(i) {
  d_step {
    i < used && v[i].entered && v[i].asset == MINTED && REST(i) > 0;
    assert(!capped || SUPPLY + REST(i) <= CAP)
  }
}

active proctype l1() {
  if
  :: capped = 1
  :: skip
  fi;
  do
  :: commit(MINTED, ALICE, 1)
  :: commit(MINTED, ALICE, 2)
  :: commit(MINTED, EVE, 2)
  :: commit(HELD, EVE, 1)
  :: withdraw(0, 1)
  :: withdraw(0, 2)
  :: withdraw(1, 1)
  :: withdraw(1, 2)
  :: withdraw(2, 1)
  :: withdraw(2, 2)
  :: withdraw(3, 1)
  :: withdraw(3, 2)
  :: withdraw(4, 1)
  :: withdraw(4, 2)
  :: withdraw(5, 1)
  :: withdraw(5, 2)
  :: enter(MINTED, 1)
  :: enter(MINTED, 2)
  :: enter(HELD, 1)
  :: enter(HELD, 2)
  :: enterWithFee()
  :: order(0)
  :: order(1)
  :: order(2)
  :: order(3)
  :: settle(0, 1)
  :: settle(0, 2)
  :: settle(0, 3)
  :: settle(0, 4)
  :: settle(0, 5)
  :: settle(1, 0)
  :: settle(1, 2)
  :: settle(1, 3)
  :: settle(1, 4)
  :: settle(1, 5)
  :: settle(2, 0)
  :: settle(2, 1)
  :: settle(2, 3)
  :: settle(2, 4)
  :: settle(2, 5)
  :: settle(3, 0)
  :: settle(3, 1)
  :: settle(3, 2)
  :: settle(3, 4)
  :: settle(3, 5)
  :: renew(0, 1)
  :: renew(0, 2)
  :: renew(0, 3)
  :: renew(0, 4)
  :: renew(0, 5)
  :: renew(1, 2)
  :: renew(1, 3)
  :: renew(1, 4)
  :: renew(1, 5)
  :: renew(2, 3)
  :: renew(2, 4)
  :: renew(2, 5)
  :: renew(3, 4)
  :: renew(3, 5)
  :: renew(4, 5)
#ifdef NO_WHOLE_LIST
  :: renewHalf(0)
  :: renewHalf(1)
  :: renewHalf(2)
  :: renewHalf(3)
  :: renewHalf(4)
  :: renewHalf(5)
#endif
  :: tryExit(0)
  :: tryExit(1)
  :: tryExit(2)
  :: tryExit(3)
  :: tryExit(4)
  :: tryExit(5)
  :: d_step { ordered && !cancelled; cancelled = 1 }
  /* Alice buys units of HELD on L1, and sells units of MINTED there. */
  :: d_step { alices[HELD] + held < 2; alices[HELD] = alices[HELD] + 2 }
  :: d_step { alices[MINTED] > 0; alices[MINTED]--; eves[MINTED]++; check() }
  od
}
