/* Renewal of a group of two jobs that overlap: hosts 0 and 1 are in job 0, hosts 1 and 2 in job 1, each job on a switch
 * of its own. Hosts crash and come back; the controller crashes between any two of its steps and starts from what it
 * stored. Frames are delayed for any time, those of crashed hosts too.
 *
 * All that a host computes since the last renewal that it was told of is one "life". What must hold: a sum combines
 * contributions of one life only, in either job. Otherwise a host that went back to a checkpoint would be added to one
 * that did not.
 *
 * A host may also ask for a renewal, ASKS times, because its keys are half used up: the controller renews all jobs
 * although nobody is lost, unless it has since the host asked.
 *
 * MUT 1: only the jobs of the lost host are renewed. MUT 2: a host is told of its jobs one after the other.
 * MUT 3: hosts are told before the new generations are stored. MUT 4: a loss renews nothing.
 * MUT 5: only the jobs of the host that asks are renewed. MUT 6: a host that asks goes on with what it has computed.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#ifndef DEEP
#define DEEP 1
#endif

#ifndef ASKS
#define ASKS 0
#endif

#define HOSTS 3
#define JOBS 2
#define IN(h, j) ((h) == (j) || (h) == (j) + 1)

byte stored[JOBS] = 1;     /* generation of each job in the store */
byte stored_life = 1;
byte mem[JOBS] = 1;        /* generation of each job as the controller tells it */
byte mem_life = 1;
byte lives = 1;            /* numbers given to lives so far */
byte installed[JOBS] = 1;  /* generation that the switch of each job admits */

bool down[HOSTS], noticed[HOSTS];
byte life[HOSTS] = 1;
byte gen0[HOSTS] = 1;      /* generation of job 0 and of job 1 that a host uses */
byte gen1[HOSTS] = 1;
byte crashes = CRASHES;
byte asks = ASKS;
byte asked[HOSTS];         /* life whose keys a host wants replaced; 0: none */
bool failed;               /* the controller crashes once */

byte held0[JOBS], held1[JOBS];  /* life of the contribution of a job's first and second member; 0: none yet */
byte tag[JOBS] = 1;

/* A frame in flight: generation and life; DEEP for each host and job. */
chan wire0[HOSTS] = [DEEP] of { byte, byte };
chan wire1[HOSTS] = [DEEP] of { byte, byte };

inline arrive(h, j, g, l) {
    if
    :: g != installed[j]  /* refused */
    :: else ->
        if
        :: tag[j] != g -> tag[j] = g; held0[j] = 0; held1[j] = 0
        :: else
        fi;
        if
        :: h == j -> held0[j] = l
        :: else -> held1[j] = l
        fi;
        assert(held0[j] == 0 || held1[j] == 0 || held0[j] == held1[j])
    fi
}

active proctype switches() {
    byte h, g, l;
end:
    do
    :: atomic {
        if
        :: wire0[0]?[g, l] -> wire0[0]?g, l; h = 0; arrive(h, 0, g, l)
        :: wire0[1]?[g, l] -> wire0[1]?g, l; h = 1; arrive(h, 0, g, l)
        :: wire1[1]?[g, l] -> wire1[1]?g, l; h = 1; arrive(h, 1, g, l)
        :: wire1[2]?[g, l] -> wire1[2]?g, l; h = 2; arrive(h, 1, g, l)
        fi;
        g = 0; l = 0; h = 0
       }
    od
}

active [HOSTS] proctype host() {
    byte me = _pid - 1;
end:
    do
    :: atomic { !down[me] && IN(me, 0) && nfull(wire0[me]) -> wire0[me]!gen0[me], life[me] }
    :: atomic { !down[me] && IN(me, 1) && nfull(wire1[me]) -> wire1[me]!gen1[me], life[me] }
    :: atomic { !down[me] && crashes > 0 -> crashes--; down[me] = true; noticed[me] = false; asked[me] = 0 }
    :: atomic { !down[me] && asks > 0 && asked[me] == 0 -> asks--; asked[me] = life[me] }
    od
}

/* A host that crashed, which the controller has not noticed yet. */
#define LOST(h) (down[h] && !noticed[h])
/* A host is behind if it is not told yet of what the controller knows. */
#define BEHIND(h) ((IN(h, 0) && gen0[h] != mem[0]) || (IN(h, 1) && gen1[h] != mem[1]))

inline tell(h) {
    if
    :: MUT == 2 && IN(h, 0) && gen0[h] != mem[0] -> gen0[h] = mem[0]
    :: else ->
        if
        :: IN(h, 0) -> gen0[h] = mem[0]
        :: else
        fi;
        if
        :: IN(h, 1) -> gen1[h] = mem[1]
        :: else
        fi
    fi;
    life[h] = mem_life
}

inline come_back(h) {
    gen0[h] = mem[0]; gen1[h] = mem[1]; life[h] = mem_life;
    if
    :: MUT == 4 -> lives++; life[h] = lives  /* its state is gone, whatever its numbers */
    :: else
    fi;
    down[h] = false
}

inline keep() {
    stored[0] = mem[0]; stored[1] = mem[1]; stored_life = mem_life
}

active proctype controller() {
    byte h;
    byte step = 0;  /* 0 idle; 1 store; 2, 3 write the switch of a job */
end:
    do
    /* a loss: new generations */
    :: atomic {
        step == 0 && (LOST(0) || LOST(1) || LOST(2)) ->
        if
        :: LOST(0) -> h = 0
        :: LOST(1) -> h = 1
        :: LOST(2) -> h = 2
        fi;
        noticed[h] = true;
        if
        :: MUT == 4
        :: else ->
            if
            :: MUT != 1 || IN(h, 0) -> mem[0] = mem[0] + 1
            :: else
            fi;
            if
            :: MUT != 1 || IN(h, 1) -> mem[1] = mem[1] + 1
            :: else
            fi;
            lives++; mem_life = lives;
            if
            :: MUT == 3 -> step = 1
            :: else -> keep(); step = 2
            fi
        fi;
        h = 0
       }
    /* a host asks for other keys; its question may come late */
    :: atomic {
        step == 0 && (asked[0] != 0 || asked[1] != 0 || asked[2] != 0) ->
        if
        :: asked[0] != 0 -> h = 0
        :: asked[1] != 0 -> h = 1
        :: asked[2] != 0 -> h = 2
        fi;
        if
        :: asked[h] == mem_life ->
            if
            :: MUT != 5 || IN(h, 0) -> mem[0] = mem[0] + 1
            :: else
            fi;
            if
            :: MUT != 5 || IN(h, 1) -> mem[1] = mem[1] + 1
            :: else
            fi;
            lives++; mem_life = lives;
            if
            :: MUT == 6 -> tell(h); life[h] = asked[h]
            :: else
            fi;
            keep(); step = 2
        :: else
        fi;
        asked[h] = 0;
        h = 0
       }
    :: atomic { step == 1 -> keep(); step = 2 }
    :: atomic { step == 2 -> installed[0] = stored[0]; step = 3 }
    :: atomic { step == 3 -> installed[1] = stored[1]; step = 0 }
    /* notices, whenever; and those that come back */
    :: atomic { (!down[0] && BEHIND(0)) -> tell(0) }
    :: atomic { (!down[1] && BEHIND(1)) -> tell(1) }
    :: atomic { (!down[2] && BEHIND(2)) -> tell(2) }
    :: atomic { step == 0 && down[0] && noticed[0] -> come_back(0) }
    :: atomic { step == 0 && down[1] && noticed[1] -> come_back(1) }
    :: atomic { step == 0 && down[2] && noticed[2] -> come_back(2) }
    /* a crash: back to what is stored, the switches are put right, losses are noticed again */
    :: atomic {
        !failed -> failed = true;
        mem[0] = stored[0]; mem[1] = stored[1]; mem_life = stored_life;
        noticed[0] = false; noticed[1] = false; noticed[2] = false;
        step = 2
       }
    od
}
