"""What a user brings: graphs, and samples per node, read from whatever holds them."""

from .columns import column_of as column_of
from .columns import is_frame as is_frame
from .columns import is_series as is_series
from .columns import listed as listed
from .columns import seen as seen
from .data import NodeData as NodeData
from .graph import Graph as Graph
from .incidence import components_of as components_of
from .incidence import difference_matrix as difference_matrix
from .incidence import groups_of as groups_of
from .incidence import means_of as means_of
from .labels import Labels as Labels
from .labels import all_of as all_of
from .labels import as_labels as as_labels
from .labels import by_appearance as by_appearance
from .labels import in_place as in_place
from .labels import index_of as index_of
from .labels import places_of as places_of
from .labels import plain_label as plain_label
from .reading import edge_name as edge_name
from .reading import is_in as is_in
from .reading import is_missing as is_missing
from .reading import numbered as numbered
from .renewal import change as change
from .renewal import renewed as renewed
from .sources import is_networkx as is_networkx
